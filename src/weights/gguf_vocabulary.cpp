#include "weights/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <limits>

#include "text/word_cuts.h"

namespace eider {
namespace {

/// tokenizer.ggml.model of SentencePiece's unigram models.
constexpr std::string_view kUnigramName = "t5";

/// The elements of an array, none when the key is absent; one for each token is required when `per_token` is
/// set.
template <class T>
Result<std::vector<T>> read_array(const GgufFile& file, std::string_view key,
                                  Result<std::vector<T>> (GgufValue::*read)() const,
                                  std::optional<std::size_t> per_token = std::nullopt) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::vector<T>();
  EIDER_TRY(auto elements, (value->*read)().context(fmt::format("metadata key {}", key)));
  if (per_token && elements.size() != *per_token)
    return error("metadata key {}: {} entries for {} tokens", key, elements.size(), *per_token);
  return elements;
}

Result<std::vector<std::string>> read_texts(const GgufFile& file, std::string_view key) {
  EIDER_TRY(const auto texts, read_array(file, key, &GgufValue::strings));
  return std::vector<std::string>(texts.begin(), texts.end());
}

Result<std::vector<TokenType>> read_types(const GgufFile& file, std::size_t token_count) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  EIDER_TRY(const auto numbers, read_array(file, kKey, &GgufValue::integers, token_count));
  std::vector<TokenType> types;
  types.reserve(numbers.size());
  for (const std::int64_t number : numbers) {
    if (number < static_cast<std::int64_t>(TokenType::kNormal) ||
        number > static_cast<std::int64_t>(TokenType::kByte))
      return error("metadata key {}: token {} has type {}; 1 to 6 are known", kKey, types.size(), number);
    types.push_back(static_cast<TokenType>(number));
  }
  return types;
}

Result<std::vector<double>> read_scores(const GgufFile& file, std::size_t token_count) {
  return read_array(file, "tokenizer.ggml.scores", &GgufValue::numbers, token_count);
}

/// Reads tokenizer.ggml.<name>_token_id.
Result<std::optional<TokenId>> read_id(const GgufFile& file, std::string_view name, std::size_t token_count) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  EIDER_TRY(const auto id, file.integer(key));
  // Some writers store "none" as -1 in 32 bits.
  if (!id || *id == -1 || *id == std::numeric_limits<std::uint32_t>::max()) return std::optional<TokenId>();
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= token_count)
    return error("metadata key {}: id {} is outside the {} tokens", key, *id, token_count);
  return std::optional<TokenId>(static_cast<TokenId>(*id));
}

/// Whether a file that does not say so wants its beginning-of-sequence token: SentencePiece models and Llama
/// 3's pre-tokenizer do.
bool adds_bos_by_default(const Vocabulary& vocabulary) {
  constexpr std::array<std::string_view, 3> kLlama3 = {"llama-bpe", "llama3", "llama-v3"};
  return vocabulary.model == "llama" || std::ranges::find(kLlama3, vocabulary.pre_tokenizer) != kLlama3.end();
}

Status read_flags(const GgufFile& file, Vocabulary& vocabulary) {
  EIDER_TRY(const auto add_bos, file.boolean("tokenizer.ggml.add_bos_token"));
  EIDER_TRY(const auto add_eos, file.boolean("tokenizer.ggml.add_eos_token"));
  EIDER_TRY(const auto add_space_prefix, file.boolean("tokenizer.ggml.add_space_prefix"));
  vocabulary.add_bos = add_bos.value_or(adds_bos_by_default(vocabulary));
  vocabulary.add_eos = add_eos.value_or(vocabulary.model == kUnigramName);
  vocabulary.add_space_prefix =
      add_space_prefix.value_or(vocabulary.model == "llama" || vocabulary.model == kUnigramName);
  return {};
}

/// What SentencePiece does with a text before a unigram model cuts it: the file's character map, spaces that
/// follow a space dropped where it says so, a space before it, and U+2581 for each space.
Status read_unigram_rules(const GgufFile& file, Vocabulary& vocabulary) {
  using Kind = NormalizerStep::Kind;
  const std::string space(kSentencePieceSpace);
  EIDER_TRY(const auto map, read_array(file, "tokenizer.ggml.precompiled_charsmap", &GgufValue::integers));
  std::vector<NormalizerStep>& steps = vocabulary.normalizer;
  if (!map.empty()) {
    NormalizerStep& step = steps.emplace_back(NormalizerStep{.kind = Kind::kCharacterMap});
    for (const std::int64_t byte : map) step.content.push_back(static_cast<char>(byte));
  }
  EIDER_TRY(const auto remove_spaces, file.boolean("tokenizer.ggml.remove_extra_whitespaces"));
  if (remove_spaces.value_or(false)) {
    steps.push_back({.kind = Kind::kReplaceMatches, .pattern = "^ +| +$"});
    steps.push_back({.kind = Kind::kReplaceMatches, .pattern = " {2,}", .content = " "});
  }
  if (vocabulary.add_space_prefix) {
    steps.push_back({.kind = Kind::kPrepend, .content = space});
    vocabulary.leading_space = LeadingSpace::kOneDropped;
  }
  steps.push_back({.kind = Kind::kReplace, .pattern = " ", .content = space});
  vocabulary.model = "unigram";
  return {};
}

}  // namespace

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
  Vocabulary vocabulary;
  EIDER_TRY(const auto model, file.string("tokenizer.ggml.model"));
  if (!model) return error("metadata key tokenizer.ggml.model is missing: the file has no tokenizer");
  vocabulary.model = *model;
  EIDER_TRY(const auto pre_tokenizer, file.string("tokenizer.ggml.pre"));
  vocabulary.pre_tokenizer = pre_tokenizer.value_or("");

  EIDER_TRY(vocabulary.tokens, read_texts(file, "tokenizer.ggml.tokens"));
  const std::size_t token_count = vocabulary.tokens.size();
  if (token_count == 0 || token_count > static_cast<std::size_t>(std::numeric_limits<TokenId>::max()))
    return error("metadata key tokenizer.ggml.tokens: missing, empty or too long");
  EIDER_TRY(vocabulary.scores, read_scores(file, token_count));
  EIDER_TRY(vocabulary.types, read_types(file, token_count));
  EIDER_TRY(vocabulary.merges, read_texts(file, "tokenizer.ggml.merges"));

  EIDER_TRY(vocabulary.bos, read_id(file, "bos", token_count));
  EIDER_TRY(vocabulary.eos, read_id(file, "eos", token_count));
  EIDER_TRY(vocabulary.eot, read_id(file, "eot", token_count));
  EIDER_TRY(vocabulary.eom, read_id(file, "eom", token_count));
  EIDER_TRY(vocabulary.unknown, read_id(file, "unknown", token_count));
  EIDER_TRY(vocabulary.padding, read_id(file, "padding", token_count));
  EIDER_TRY_STATUS(read_flags(file, vocabulary));
  if (vocabulary.model == kUnigramName) EIDER_TRY_STATUS(read_unigram_rules(file, vocabulary));

  EIDER_TRY(const auto chat_template, file.string("tokenizer.chat_template"));
  vocabulary.chat_template = chat_template.value_or("");
  return vocabulary;
}

}  // namespace eider
