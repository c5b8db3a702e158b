#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/byte_bpe.h"
#include "text/sentencepiece_bpe.h"
#include "text/special_tokens.h"

namespace eider {

namespace {

// Control tokens that end a turn whatever the file's eos says: wrong eos ids in published GGUF files are
// common.
constexpr std::array<std::string_view, 12> kTurnEnds = {"<|eot_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<end_of_turn>",
                                                        "<|endoftext|>",
                                                        "<|eom_id|>",
                                                        "<|end_of_text|>",
                                                        "<｜end▁of▁sentence｜>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<|END_OF_TURN_TOKEN|>",
                                                        "<turn|>"};

std::string sentencepiece_bytes(const Vocabulary& vocabulary, TokenId id) {
  const std::string& token = vocabulary.tokens[static_cast<std::size_t>(id)];
  if (vocabulary.type(id) == TokenType::kByte) {
    const auto byte = vocabulary.byte(id);
    return byte ? std::string(1, static_cast<char>(*byte)) : std::string();
  }
  std::string bytes;
  for (std::string_view rest = token; !rest.empty();) {
    const std::size_t space = rest.find(kSentencePieceSpace);
    bytes.append(rest.substr(0, space));
    if (space == std::string_view::npos) break;
    bytes.push_back(' ');
    rest.remove_prefix(space + kSentencePieceSpace.size());
  }
  return bytes;
}

// [id] -> what the token stands for in running text.
std::vector<std::string> all_token_bytes(const Vocabulary& vocabulary) {
  std::vector<std::string> bytes(vocabulary.tokens.size());
  const bool byte_level = vocabulary.model == "gpt2";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    switch (vocabulary.type(id)) {
      case TokenType::kNormal:
      case TokenType::kByte:
        bytes[i] = byte_level ? alphabet_to_bytes(vocabulary.tokens[i]) : sentencepiece_bytes(vocabulary, id);
        break;
      case TokenType::kUserDefined:
        bytes[i] = vocabulary.tokens[i];
        break;
      case TokenType::kUnknown:
      case TokenType::kControl:
      case TokenType::kUnused:
        break;
    }
  }
  return bytes;
}

std::vector<bool> all_turn_ends(const Vocabulary& vocabulary) {
  std::vector<bool> ends(vocabulary.tokens.size());
  for (const std::optional<TokenId> id : {vocabulary.eos, vocabulary.eot, vocabulary.eom}) {
    if (id) ends[static_cast<std::size_t>(*id)] = true;
  }
  for (const TokenId id : vocabulary.more_eos) ends[static_cast<std::size_t>(id)] = true;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (vocabulary.type(static_cast<TokenId>(i)) != TokenType::kControl) continue;
    if (std::ranges::find(kTurnEnds, vocabulary.tokens[i]) != kTurnEnds.end()) ends[i] = true;
  }
  return ends;
}

using Segmenter = std::variant<ByteBpe, SentencePieceBpe>;

Result<Segmenter> make_segmenter(const Vocabulary& vocabulary, const std::vector<std::string>& token_bytes) {
  if (vocabulary.model == "gpt2") {
    EIDER_TRY(ByteBpe bpe, ByteBpe::create(vocabulary, token_bytes));
    return Segmenter(std::move(bpe));
  }
  if (vocabulary.model == "llama") {
    EIDER_TRY(SentencePieceBpe bpe, SentencePieceBpe::create(vocabulary));
    return Segmenter(std::move(bpe));
  }
  return error("unknown tokenizer model '{}'; known are gpt2, llama", vocabulary.model);
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(Vocabulary given)
      : vocabulary(std::move(given)),
        token_bytes(all_token_bytes(vocabulary)),
        turn_ends(all_turn_ends(vocabulary)),
        special_tokens(vocabulary) {}

  bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < token_bytes.size(); }

  Vocabulary vocabulary;
  std::vector<std::string> token_bytes;
  std::vector<bool> turn_ends;
  SpecialTokens special_tokens;
  std::optional<Segmenter> segmenter;  // refers to the members above; set by create()
};

Result<Tokenizer> Tokenizer::create(Vocabulary vocabulary) {
  EIDER_TRY_STATUS(vocabulary.check().context("tokenizer"));
  auto impl = std::make_unique<Impl>(std::move(vocabulary));
  EIDER_TRY(impl->segmenter, make_segmenter(impl->vocabulary, impl->token_bytes).context("tokenizer"));
  return Tokenizer(std::move(impl));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const Vocabulary& vocabulary = impl_->vocabulary;
  std::vector<TokenId> ids;
  if (options.add_special && vocabulary.add_bos && vocabulary.bos) {
    // Templates often print BOS themselves, and a second one harms the model silently.
    const bool written = options.parse_special && text.starts_with(piece(*vocabulary.bos));
    if (!written) ids.push_back(*vocabulary.bos);
  }
  bool after_special = true;  // the text's start counts as such
  const auto encode_part = [&](std::string_view part) {
    if (part.empty()) return;
    if (const auto* byte_bpe = std::get_if<ByteBpe>(&*impl_->segmenter)) {
      byte_bpe->encode(part, ids);
    } else {
      const bool space_prefix = vocabulary.add_space_prefix && after_special;
      std::get<SentencePieceBpe>(*impl_->segmenter).encode(part, space_prefix, ids);
    }
    after_special = false;
  };
  std::size_t done = 0;
  while (const auto special = impl_->special_tokens.find(text, done, options.parse_special)) {
    encode_part(text.substr(done, special->begin - done));
    ids.push_back(special->id);
    after_special = true;
    done = special->begin + special->size;
  }
  encode_part(text.substr(done));
  if (options.add_special && vocabulary.add_eos && vocabulary.eos) ids.push_back(*vocabulary.eos);
  return ids;
}

std::string_view Tokenizer::bytes(TokenId id) const {
  return impl_->contains(id) ? std::string_view(impl_->token_bytes[static_cast<std::size_t>(id)])
                             : std::string_view();
}

std::string_view Tokenizer::piece(TokenId id) const {
  return impl_->contains(id) ? std::string_view(impl_->vocabulary.tokens[static_cast<std::size_t>(id)])
                             : std::string_view();
}

bool Tokenizer::ends_turn(TokenId id) const {
  return impl_->contains(id) && impl_->turn_ends[static_cast<std::size_t>(id)];
}

bool Tokenizer::strips_leading_space() const {
  return impl_->vocabulary.model == "llama" && impl_->vocabulary.add_space_prefix;
}

const Vocabulary& Tokenizer::vocabulary() const {
  return impl_->vocabulary;
}

}  // namespace eider
