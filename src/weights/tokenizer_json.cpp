#include "weights/tokenizer_json.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "weights/json_element.h"
#include "weights/printable.h"
#include "weights/tokenizer_component.h"

namespace eider {
namespace {

namespace dom = simdjson::dom;

/// Spelling to id, of the model's own tokens. Views of the parsed document.
using SpellingIndex = std::unordered_map<std::string_view, TokenId>;

/// Makes room for `id`. Ids that nothing spells stay unused.
Status reserve_id(std::int64_t id, std::string_view place, Vocabulary& vocabulary) {
  if (id < 0 || static_cast<std::size_t>(id) >= kMostJsonItems)
    return error("{}: id {} is not in 0..{}", place, id, kMostJsonItems - 1);
  const auto index = static_cast<std::size_t>(id);
  if (index >= vocabulary.tokens.size()) {
    vocabulary.tokens.resize(index + 1);
    vocabulary.types.resize(index + 1, TokenType::kUnused);
  }
  return {};
}

/// Puts a token of the model's own into `vocabulary` and `index`.
Status add_token(std::string_view spelling, std::int64_t id, bool byte_fallback, std::string_view place,
                 SpellingIndex& index, Vocabulary& vocabulary) {
  EIDER_TRY_STATUS(reserve_id(id, place, vocabulary));
  const auto token = static_cast<TokenId>(id);
  if (!index.try_emplace(spelling, token).second)
    return error("{}: token {} appears twice", place, printable(spelling));
  const auto slot = static_cast<std::size_t>(id);
  if (vocabulary.types[slot] != TokenType::kUnused) return error("{}: two tokens have id {}", place, id);
  vocabulary.tokens[slot] = spelling;
  vocabulary.types[slot] = byte_fallback && vocabulary.byte(token) ? TokenType::kByte : TokenType::kNormal;
  return {};
}

/// BPE: an object of ids.
Status read_tokens(const JsonElement& model, SpellingIndex& index, Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement vocab, model.at("vocab"));
  EIDER_TRY(const auto entries, vocab.as<dom::object>("an object"));
  EIDER_TRY(const bool byte_fallback, model.flag("byte_fallback", false));
  index.reserve(std::min<std::size_t>(entries.size(), kMostJsonItems));
  vocabulary.tokens.reserve(index.bucket_count());
  for (const dom::key_value_pair& entry : entries) {
    std::int64_t id = -1;
    if (entry.value.get(id) != simdjson::SUCCESS)
      return error("{}: token {}: expected an integer", vocab.place, printable(entry.key));
    EIDER_TRY_STATUS(add_token(entry.key, id, byte_fallback, vocab.place, index, vocabulary));
  }
  return {};
}

/// Unigram: an array of [token, score], whose places are the ids.
Status read_scored_tokens(const JsonElement& model, SpellingIndex& index, Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement vocab, model.at("vocab"));
  EIDER_TRY(const auto entries, vocab.as<dom::array>("an array"));
  EIDER_TRY(const bool byte_fallback, model.flag("byte_fallback", false));
  std::int64_t id = 0;
  for (const dom::element entry : entries) {
    dom::array pair;
    std::string_view token;
    double score = 0;
    if (entry.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(token) != simdjson::SUCCESS || pair.at(1).get(score) != simdjson::SUCCESS)
      return error("{}: token {}: expected a token and its score", vocab.place, id);
    EIDER_TRY_STATUS(add_token(token, id++, byte_fallback, vocab.place, index, vocabulary));
    vocabulary.scores.push_back(score);
  }
  return {};
}

/// Both pieces of a merge: an array of two, or one text with a space between them.
Result<std::pair<std::string_view, std::string_view>> read_pair(dom::element value, const JsonElement& merges,
                                                                std::size_t rank) {
  std::string_view text, left, right;
  dom::array pair;
  if (value.get(text) == simdjson::SUCCESS) {
    const std::size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos)
      return std::pair(text.substr(0, space), text.substr(space + 1));
  } else if (value.get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
             pair.at(0).get(left) == simdjson::SUCCESS && pair.at(1).get(right) == simdjson::SUCCESS) {
    return std::pair(left, right);
  }
  return error("{}: merge {} is not two pieces", merges.place, rank);
}

Status read_merges(const JsonElement& model, const SpellingIndex& index, Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement merges, model.at("merges"));
  EIDER_TRY(const auto array, merges.as<dom::array>("an array"));
  vocabulary.merge_ids.reserve(std::min<std::size_t>(array.size(), kMostJsonItems));
  std::string joined;
  for (const dom::element value : array) {
    const std::size_t rank = vocabulary.merge_ids.size();
    EIDER_TRY(const auto pair, read_pair(value, merges, rank));
    const auto& [left, right] = pair;
    joined.assign(left).append(right);
    const auto left_id = index.find(left), right_id = index.find(right), joined_id = index.find(joined);
    if (left_id == index.end() || right_id == index.end() || joined_id == index.end())
      return error("{}: merge {} ({} and {}) names a piece that is no token", merges.place, rank,
                   printable(left), printable(right));
    vocabulary.merge_ids.push_back({left_id->second, right_id->second, joined_id->second});
  }
  return {};
}

Status refuse_unsupported(const JsonElement& model) {
  if (model.find("dropout")) return error("model.dropout is not supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    EIDER_TRY(const auto affix, model.string(key));
    if (!affix.empty()) return error("model.{} is not supported", key);
  }
  return {};
}

Status read_bpe(const JsonElement& model, SpellingIndex& index, Vocabulary& vocabulary) {
  vocabulary.model = "bpe";
  EIDER_TRY_STATUS(refuse_unsupported(model));
  EIDER_TRY_STATUS(read_tokens(model, index, vocabulary));
  EIDER_TRY_STATUS(read_merges(model, index, vocabulary));
  EIDER_TRY(vocabulary.ignore_merges, model.flag("ignore_merges", false));
  EIDER_TRY(vocabulary.fuse_unknown, model.flag("fuse_unk", false));
  if (!model.find("unk_token")) return {};
  EIDER_TRY(const auto unknown, model.string("unk_token"));
  const auto found = index.find(unknown);
  if (found == index.end()) return error("model.unk_token: {} is no token", printable(unknown));
  vocabulary.unknown = found->second;
  return {};
}

Status read_unigram(const JsonElement& model, SpellingIndex& index, Vocabulary& vocabulary) {
  vocabulary.model = "unigram";
  EIDER_TRY_STATUS(read_scored_tokens(model, index, vocabulary));
  const auto least = std::ranges::min_element(vocabulary.scores);
  if (least != vocabulary.scores.end()) vocabulary.least_score = *least;
  const auto unknown = model.find("unk_id");
  if (!unknown) return {};
  EIDER_TRY(const std::int64_t id, unknown->integer());
  if (id < 0 || static_cast<std::uint64_t>(id) >= vocabulary.tokens.size())
    return error("{}: {} is not the id of a token", unknown->place, id);
  vocabulary.unknown = static_cast<TokenId>(id);
  return {};
}

Status read_model(const JsonElement& root, SpellingIndex& index, Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement model, root.at("model"));
  EIDER_TRY(const auto type, model.string("type"));
  // Files of old writers leave the type out.
  if (type == "BPE" || type.empty()) return read_bpe(model, index, vocabulary);
  if (type == "Unigram") return read_unigram(model, index, vocabulary);
  return error("model: type {} is not supported; known are BPE, Unigram", printable(type));
}

Status read_added_token(const JsonElement& added, const SpellingIndex& index, Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement id_element, added.at("id"));
  EIDER_TRY(const std::int64_t id, id_element.integer());
  EIDER_TRY(const JsonElement content_element, added.at("content"));
  EIDER_TRY(const auto content, content_element.string());
  EIDER_TRY_STATUS(reserve_id(id, added.place, vocabulary));
  AddedTokenRule rule{.id = static_cast<TokenId>(id)};
  if (const auto own = index.find(content); own != index.end() && own->second != rule.id)
    return error("{}: {} has id {} here and {} in the model's vocabulary", added.place, printable(content),
                 id, own->second);
  EIDER_TRY(rule.lstrip, added.flag("lstrip", false));
  EIDER_TRY(rule.rstrip, added.flag("rstrip", false));
  EIDER_TRY(rule.single_word, added.flag("single_word", false));
  EIDER_TRY(rule.normalized, added.flag("normalized", true));
  EIDER_TRY(const bool special, added.flag("special", false));
  vocabulary.tokens[static_cast<std::size_t>(id)] = content;
  vocabulary.types[static_cast<std::size_t>(id)] = special ? TokenType::kControl : TokenType::kUserDefined;
  if (rule.lstrip || rule.rstrip || rule.single_word || rule.normalized)
    vocabulary.added_token_rules.push_back(rule);
  return {};
}

Status read_added_tokens(const JsonElement& root, const SpellingIndex& index, Vocabulary& vocabulary) {
  const auto list = root.find("added_tokens");
  if (!list) return {};
  EIDER_TRY(const auto array, list->as<dom::array>("an array"));
  std::size_t i = 0;
  for (const dom::element value : array) {
    const JsonElement added{value, fmt::format("{}[{}]", list->place, i++)};
    EIDER_TRY_STATUS(read_added_token(added, index, vocabulary));
  }
  return {};
}

}  // namespace

Result<Vocabulary> parse_tokenizer_json(std::span<const std::byte> text) {
  constexpr std::size_t kMostBytes = std::size_t{512} << 20;
  if (text.size() > kMostBytes) return error("{} bytes; at most {} are read", text.size(), kMostBytes);
  if (text.empty())
    return error("not JSON: it is empty");  // the parser copies from the null pointer it has then
  dom::parser parser;
  dom::element document;
  const auto problem =
      parser.parse(reinterpret_cast<const char*>(text.data()), text.size(), true).get(document);
  if (problem != simdjson::SUCCESS) return error("not JSON: {}", simdjson::error_message(problem));

  const JsonElement root{document, ""};
  Vocabulary vocabulary;
  SpellingIndex index;
  EIDER_TRY_STATUS(read_model(root, index, vocabulary));
  EIDER_TRY_STATUS(read_added_tokens(root, index, vocabulary));
  if (!vocabulary.scores.empty()) vocabulary.scores.resize(vocabulary.tokens.size());  // added tokens
  EIDER_TRY_STATUS(read_normalizer(root, vocabulary));
  EIDER_TRY_STATUS(read_pre_tokenizer(root, vocabulary));
  EIDER_TRY_STATUS(read_decoder(root, vocabulary));
  EIDER_TRY_STATUS(read_post_processor(root, vocabulary));
  EIDER_TRY_STATUS(vocabulary.check());
  return vocabulary;
}

}  // namespace eider
