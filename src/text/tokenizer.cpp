#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "base/function_ref.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/normalize.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece_bpe.h"
#include "text/special_tokens.h"
#include "text/unigram.h"
#include "text/word_cuts.h"

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
        // GGUF files of BPE models spell them as they stand in text.
        bytes[i] = vocabulary.model == "bpe" || vocabulary.model == "unigram"
                       ? sentencepiece_bytes(vocabulary, id)
                       : vocabulary.tokens[i];
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

// GGUF files leave out what their model's name implies.
std::vector<NormalizerStep> normalizer_steps(const Vocabulary& vocabulary) {
  using Kind = NormalizerStep::Kind;
  const std::string space(kSentencePieceSpace);
  std::vector<NormalizerStep> steps = vocabulary.normalizer;
  if (vocabulary.model == "llama") {
    if (vocabulary.add_space_prefix) steps.push_back({.kind = Kind::kPrepend, .content = space});
    steps.push_back({.kind = Kind::kReplace, .pattern = " ", .content = space});
  } else if (vocabulary.model == "gpt2" && !vocabulary.piece_rules &&
             pre_tokenizer_normalizes_nfc(vocabulary.pre_tokenizer)) {
    steps.push_back({.kind = Kind::kNfc});
  }
  return steps;
}

using Segmenter = std::variant<Bpe, SentencePieceBpe, Unigram>;

Result<Segmenter> make_segmenter(const Vocabulary& vocabulary, const std::vector<std::string>& token_bytes) {
  if (vocabulary.model == "gpt2" || vocabulary.model == "bpe") {
    EIDER_TRY(Bpe bpe, Bpe::create(vocabulary, token_bytes));
    return Segmenter(std::move(bpe));
  }
  if (vocabulary.model == "llama") {
    EIDER_TRY(SentencePieceBpe bpe, SentencePieceBpe::create(vocabulary));
    return Segmenter(std::move(bpe));
  }
  if (vocabulary.model == "unigram") {
    EIDER_TRY(Unigram unigram, Unigram::create(vocabulary));
    return Segmenter(std::move(unigram));
  }
  return error("unknown tokenizer model '{}'; known are gpt2, bpe, llama, unigram", vocabulary.model);
}

}  // namespace

struct Tokenizer::Impl {
  Impl(Vocabulary given, Normalizer prepared)
      : vocabulary(std::move(given)),
        token_bytes(all_token_bytes(vocabulary)),
        turn_ends(all_turn_ends(vocabulary)),
        normalizer(std::move(prepared)),
        special_tokens(SpecialTokens::of_text(vocabulary)),
        normalized_special_tokens(SpecialTokens::of_normalized_text(vocabulary, normalizer)) {}

  // Where a section of the text between special tokens stands.
  enum class Place : std::uint8_t { kTextStart, kContinuation, kBehindToken };
  void encode_section(std::string_view section, Place place, bool parse_special,
                      std::vector<TokenId>& ids) const;

  Vocabulary vocabulary;
  std::vector<std::string> token_bytes;
  std::vector<bool> turn_ends;
  Normalizer normalizer;
  SpecialTokens special_tokens;
  SpecialTokens normalized_special_tokens;
  std::optional<Segmenter> segmenter;  // refers to the members above; set by create()
};

namespace {

// Appends the ids of the tokens found in `text`; `encode` appends those of the text between them.
void encode_between(const SpecialTokens& tokens, std::string_view text, bool parse_special,
                    std::vector<TokenId>& ids, FunctionRef<void(std::string_view)> encode) {
  std::size_t done = 0;
  const auto encode_until = [&](std::size_t end) {
    if (end > done) encode(text.substr(done, end - done));
  };
  while (const auto match = tokens.find(text, done, parse_special)) {
    encode_until(match->begin);
    ids.push_back(match->id);
    done = match->begin + match->size;
  }
  encode_until(text.size());
}

}  // namespace

void Tokenizer::Impl::encode_section(std::string_view section, Place place, bool parse_special,
                                     std::vector<TokenId>& ids) const {
  std::string storage;
  const std::string_view normalized = normalizer.apply(section, storage, place == Place::kContinuation);
  const auto encode = [&](std::string_view text) {
    const bool at_start = place == Place::kTextStart && text.data() == normalized.data();
    std::visit([&](const auto& model) { model.encode(text, at_start, ids); }, *segmenter);
  };
  encode_between(normalized_special_tokens, normalized, parse_special, ids, encode);
}

Result<Tokenizer> Tokenizer::create(Vocabulary vocabulary) {
  EIDER_TRY_STATUS(vocabulary.check().context("tokenizer"));
  EIDER_TRY(Normalizer normalizer, Normalizer::create(normalizer_steps(vocabulary)).context("tokenizer"));
  auto impl = std::make_unique<Impl>(std::move(vocabulary), std::move(normalizer));
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
    if (!written || options.repeat_bos) ids.push_back(*vocabulary.bos);
  }
  using Place = Impl::Place;
  const Place first_place = options.continues_text ? Place::kContinuation : Place::kTextStart;
  encode_between(impl_->special_tokens, text, options.parse_special, ids, [&](std::string_view section) {
    const Place place = section.data() == text.data() ? first_place : Place::kBehindToken;
    impl_->encode_section(section, place, options.parse_special, ids);
  });
  if (options.add_special && vocabulary.add_eos && vocabulary.eos) ids.push_back(*vocabulary.eos);
  return ids;
}

std::string_view Tokenizer::bytes(TokenId id) const {
  return impl_->vocabulary.contains(id) ? std::string_view(impl_->token_bytes[static_cast<std::size_t>(id)])
                                        : std::string_view();
}

std::string_view Tokenizer::piece(TokenId id) const {
  return impl_->vocabulary.contains(id)
             ? std::string_view(impl_->vocabulary.tokens[static_cast<std::size_t>(id)])
             : std::string_view();
}

bool Tokenizer::ends_turn(TokenId id) const {
  return impl_->vocabulary.contains(id) && impl_->turn_ends[static_cast<std::size_t>(id)];
}

LeadingSpace Tokenizer::leading_space() const {
  const Vocabulary& vocabulary = impl_->vocabulary;
  const bool dropped = vocabulary.model == "llama" && vocabulary.add_space_prefix;
  return dropped ? LeadingSpace::kOneDropped : vocabulary.leading_space;
}

const Vocabulary& Tokenizer::vocabulary() const {
  return impl_->vocabulary;
}

}  // namespace eider
