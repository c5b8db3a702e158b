#include "text/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "base/check.h"
#include "text/utf8.h"

namespace eider {

namespace {

// The patterns are those of the published tokenizer.json files, under the names that GGUF files give them.

#define EIDER_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define EIDER_WHITE_SPACE_TAIL R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 = EIDER_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" EIDER_WHITE_SPACE_TAIL;
constexpr const char* kQwen2 =
    EIDER_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" EIDER_WHITE_SPACE_TAIL;
constexpr const char* kQwen35 = EIDER_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" EIDER_WHITE_SPACE_TAIL;
constexpr const char* kSeedCoder =
    EIDER_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" EIDER_WHITE_SPACE_TAIL;
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";

#define EIDER_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define EIDER_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define EIDER_CASED_WORD(contractions)                                                                      \
  R"([^\r\n\p{L}\p{N}]?)" EIDER_UPPER "*" EIDER_LOWER "+" contractions R"(|[^\r\n\p{L}\p{N}]?)" EIDER_UPPER \
  "+" EIDER_LOWER "*" contractions
constexpr const char* kTekken =
    EIDER_CASED_WORD("") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" EIDER_WHITE_SPACE_TAIL;
constexpr const char* kGpt4o = EIDER_CASED_WORD(
    EIDER_CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" EIDER_WHITE_SPACE_TAIL;

constexpr const char* kDeepseek3Words =
    R"([!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" EIDER_WHITE_SPACE_TAIL;
constexpr const char* kDeepseek3Cjk = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kDeepseekCjk = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
// The look-behind changes no match (the leftmost one starts at a run's start anyway); without it, a long run
// of spaces inside a piece would be tried from each of its characters.
constexpr const char* kTrailingSpace = R"((?<!\s)\s+$)";
constexpr const char* kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";

// Letters of the scripts that have case, as deepseek-llm lists them.
constexpr const char* kDeepseekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-)"
    R"(\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-)"
    R"(\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-)"
    R"(\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-)"
    R"(\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
    R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-)"
    R"(\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{3A9}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
    R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-)"
    R"(\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0})"
    R"(-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-)"
    R"(\x{1E943})"
    R"(]+)";

enum class Nfc : bool { kNo, kYes };
enum class Merges : bool { kAlways, kIgnoredForWholeTokens };

struct Entry {
  std::vector<std::string_view> names;
  std::vector<const char*> patterns;
  Nfc nfc = Nfc::kNo;
  Merges merges = Merges::kAlways;
};

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = {
      {{"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4"}, {kGpt2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       {R"(\p{N})", kGpt2}},
      {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
       {kLlama3},
       Nfc::kNo,
       Merges::kIgnoredForWholeTokens},
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {kLlama3}},
      {{"qwen2", "deepseek-r1-qwen"}, {kQwen2}, Nfc::kYes},
      {{"stablelm2", "hunyuan", "megrez", "grok-2"}, {kQwen2}},
      {{"qwen35"}, {kQwen35}, Nfc::kYes},
      {{"deepseek-llm"},
       {R"([\r\n])", kDeepseekLetters, kDeepseekPunctuation, kTrailingSpace, kDeepseekCjk, R"(\p{N}+)"}},
      {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, R"(\p{N})"}},
      {{"deepseek-v3", "deepseek-v3.1", "deepseek-v4", "joyai-llm", "hunyuan-dense"},
       {R"(\p{N}{1,3})", kDeepseek3Cjk, kDeepseek3Words}},
      {{"tekken"}, {kTekken}, Nfc::kNo, Merges::kIgnoredForWholeTokens},
      {{"gpt-4o", "llama4", "minimax-m2"}, {kGpt4o}},
      {{"seed-coder"}, {kSeedCoder}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {kBailing}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {kBloom}},
      {{"viking"}, {kBloom, R"(\p{N})"}},
  };
  return entries;
}

const Entry* find_entry(std::string_view name) {
  for (const Entry& entry : table()) {
    if (std::ranges::find(entry.names, name) != entry.names.end()) return &entry;
  }
  return nullptr;
}

std::string known_names() {
  std::string names;
  for (const Entry& entry : table()) {
    for (const std::string_view name : entry.names)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return names;
}

}  // namespace

bool pre_tokenizer_normalizes_nfc(std::string_view name) {
  const Entry* entry = find_entry(name);
  return entry != nullptr && entry->nfc == Nfc::kYes;
}

Result<PreTokenizer> PreTokenizer::named(std::string_view name) {
  const Entry* entry = find_entry(name);
  if (entry == nullptr) return error("unknown pre-tokenizer '{}'; known are {}", name, known_names());
  std::vector<PieceRule> rules;
  for (const char* pattern : entry->patterns) rules.emplace_back(SplitRule{.pattern = pattern});
  EIDER_TRY(PreTokenizer result, create(rules));
  result.ignores_merges_ = entry->merges == Merges::kIgnoredForWholeTokens;
  return result;
}

Result<PreTokenizer> PreTokenizer::create(std::span<const PieceRule> rules) {
  constexpr std::size_t kMostRules = 64;  // each recurses
  if (rules.size() > kMostRules)
    return error("{} pre-tokenizers; at most {} are followed", rules.size(), kMostRules);
  PreTokenizer result;
  for (const PieceRule& rule : rules) {
    if (const auto* split = std::get_if<SplitRule>(&rule)) {
      EIDER_TRY(Regex pattern, Regex::compile(split->pattern));
      result.stages_.push_back(Split{std::move(pattern), split->match});
    } else {
      result.stages_.push_back(std::get<SpaceRule>(rule));
    }
  }
  return result;
}

/// One call of split().
class PreTokenizer::Run {
 public:
  using Take = FunctionRef<void(std::string_view)>;

  Run(const std::vector<Stage>& stages, std::string_view text)
      : stages_(stages), is_valid_(is_valid_utf8(text)) {}

  /// `at_start`: no text stands before `piece`.
  void pass_on(std::string_view piece, std::size_t stage, bool at_start, Take take) {
    if (piece.empty()) return;
    if (stage == stages_.size()) return take(piece);
    if (const auto* split = std::get_if<Split>(&stages_[stage]))
      return cut(*split, piece, stage, at_start, take);
    pass_on(spell_spaces(std::get<SpaceRule>(stages_[stage]), piece, at_start), stage + 1, at_start, take);
  }

 private:
  void cut(const Split& split, std::string_view text, std::size_t stage, bool at_start, Take take) {
    using Match = SplitRule::Match;
    std::size_t done = 0;
    const auto piece_until = [&](std::size_t end) {
      pass_on(text.substr(done, end - done), stage + 1, at_start && done == 0, take);
      done = end;
    };
    const auto take_match = [&](Regex::Match match) {
      if (split.match == Match::kKept) done = match.begin;
      if (split.match != Match::kWithPrevious) piece_until(match.begin);
      if (split.match == Match::kRemoved) done = match.end;
      if (split.match != Match::kWithNext) piece_until(match.end);
    };
    split.pattern.for_each_match(text, scratch_, take_match, is_valid_);
    if (split.match != Match::kKept) piece_until(text.size());
  }

  std::string_view spell_spaces(const SpaceRule& rule, std::string_view text, bool at_start) {
    std::string spelled;
    for (const char c : text) c == ' ' ? void(spelled.append(rule.space)) : spelled.push_back(c);
    const bool prefix =
        rule.prefix == SpaceRule::Prefix::kAlways || (rule.prefix == SpaceRule::Prefix::kFirst && at_start);
    if (prefix && !spelled.starts_with(rule.space)) spelled.insert(0, rule.space);
    return respelled_.emplace_back(std::move(spelled));
  }

  const std::vector<Stage>& stages_;
  const bool is_valid_;
  Regex::Scratch scratch_;
  std::deque<std::string> respelled_;  // what pieces are views of, where they are not of the text
};

void PreTokenizer::split(std::string_view text, FunctionRef<void(std::string_view)> take,
                         bool at_start) const {
  Run(stages_, text).pass_on(text, 0, at_start, take);
}

}  // namespace eider
