// Vocabulary: what a checkpoint says about its tokens, as data. weights/ fills it from GGUF metadata or from
// tokenizer.json; Tokenizer and Detokenizer work from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace eider {

inline constexpr TokenId kNoToken = -1;

/// The GGUF numbering of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

/// One step of bringing text into the form that tokens are spelled in.
struct NormalizerStep {
  enum class Kind : std::uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,    ///< drops all marks
    kStrip,           ///< drops white space at the ends
    kPrepend,         ///< puts `content` before a text that is not empty
    kReplace,         ///< puts `content` wherever `pattern`, plain text that is not empty, stands
    kReplaceMatches,  ///< the same where the regular expression `pattern` matches
    kCharacterMap,    ///< SentencePiece's precompiled character map in `content`, as SentencePiece uses it
    kCharacterMapByGraphemes,  ///< the same map as the tokenizers package uses it
  };

  Kind kind = Kind::kNfc;
  std::string pattern;
  std::string content;
  bool at_start = true;  ///< kStrip
  bool at_end = true;    ///< kStrip
};

/// A pattern that cuts text into pieces, and what becomes of a match.
struct SplitRule {
  enum class Match : std::uint8_t {
    kIsolated,      ///< a piece of its own, as is the gap beside it
    kWithPrevious,  ///< joins the gap before it
    kWithNext,      ///< joins the gap behind it
    kRemoved,       ///< dropped
    kKept,          ///< a piece, and the gaps are dropped
  };

  std::string pattern;
  Match match = Match::kIsolated;
};

/// How pieces spell spaces: each U+0020 becomes `space`, and a piece that does not begin with it gets one.
struct SpaceRule {
  enum class Prefix : std::uint8_t { kNever, kFirst /* only at the start of the whole text */, kAlways };

  std::string space;
  Prefix prefix = Prefix::kAlways;
};

using PieceRule = std::variant<SplitRule, SpaceRule>;

/// What decoding drops of the spaces that encoding may have put at the start.
enum class LeadingSpace : std::uint8_t {
  kKept,
  kOneDropped,       ///< one at the start of the whole output
  kFirstTokenBared,  ///< all spaces of the first token
};

/// How a token is found in text where that is not simply its spelling in the text as it is written.
struct AddedTokenRule {
  TokenId id = 0;
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space behind it along
  bool single_word = false;  ///< not beside a letter, mark, digit or underscore
  bool normalized = false;   ///< found in normalised text, by its normalised spelling
};

/// A merge by ids: `left` and `right` become `joined`.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId joined = 0;
};

struct Vocabulary {
  /// "gpt2": byte-level BPE with merges; "bpe": BPE with merges over characters, with byte tokens for those
  /// that are no tokens; "llama": SentencePiece BPE with scores; "unigram": the pieces of the highest total
  /// score. GGUF files leave out what is usual for their model: a "llama" vocabulary adds BOS and a space
  /// prefix unless told otherwise, a "gpt2" one neither.
  std::string model;
  /// Name of the pre-tokenizer ("smollm", "llama-bpe", "qwen2", ...), which also says whether text is brought
  /// to NFC and merges are ignored for whole tokens; only byte-level BPE without `piece_rules` uses it.
  std::string pre_tokenizer;
  /// What stands for the name where the source spells it out: together with `normalizer` and `ignore_merges`.
  std::optional<std::vector<PieceRule>> piece_rules;
  std::vector<NormalizerStep> normalizer;  ///< in order; "llama" vocabularies bring their own
  bool ignore_merges = false;              ///< a piece that is a token is taken whole
  bool fuse_unknown = false;               ///< BPE: neighbouring unknown characters become one unknown token

  std::vector<std::string> tokens;    ///< [V] text; byte-level BPE: in the byte-to-unicode alphabet
  std::vector<double> scores;         ///< [V] or empty
  std::vector<TokenType> types;       ///< [V] or empty (all normal)
  std::optional<double> least_score;  ///< unigram: the score that unknown characters fall below, else that of
                                      ///< the worst normal token
  std::vector<std::string> merges;    ///< "left right", rank = index
  std::vector<Merge> merge_ids;       ///< instead of `merges`, for pieces that may hold spaces; rank = index
  std::vector<AddedTokenRule> added_token_rules;

  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
  std::vector<TokenId> more_eos;  ///< further end-of-sequence ids (generation_config.json)
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  LeadingSpace leading_space = LeadingSpace::kKept;
  bool clean_up_spaces = false;  ///< decoding drops spaces before punctuation (SpaceCleaner)

  std::string chat_template;  ///< Jinja source, empty when the checkpoint has none

  /// Status of what no tokenizer can work with: lists of different lengths, ids out of range, special tokens
  /// too long to be looked for everywhere.
  Status check() const;
  /// `id` must be in range, here and below.
  TokenType type(TokenId id) const;
  bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < tokens.size(); }
  /// The value of a byte token, spelled "<0x0A>".
  std::optional<std::uint8_t> byte(TokenId id) const;

 private:
  Status check_special_tokens() const;
};

}  // namespace eider
