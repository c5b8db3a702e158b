// Vocabulary: what a checkpoint says about its tokens, as data. weights/ fills it from GGUF metadata or from
// tokenizer.json; Tokenizer and Detokenizer work from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace eider {

/// The GGUF numbering of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct Vocabulary {
  /// "gpt2": byte-level BPE with merges; "llama": SentencePiece BPE with scores. GGUF files leave out what is
  /// usual for their model: a "llama" vocabulary adds BOS and a space prefix unless told otherwise, a "gpt2"
  /// one neither.
  std::string model;
  /// Name of the pre-tokenizer ("smollm", "llama-bpe", "qwen2", ...); only byte-level BPE uses it.
  std::string pre_tokenizer;

  std::vector<std::string> tokens;  ///< [V] text; byte-level BPE: in the byte-to-unicode alphabet
  std::vector<float> scores;        ///< [V] or empty
  std::vector<TokenType> types;     ///< [V] or empty (all normal)
  std::vector<std::string> merges;  ///< "left right", rank = index

  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
  std::vector<TokenId> more_eos;  ///< further end-of-sequence ids (generation_config.json)
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;

  std::string chat_template;  ///< Jinja source, empty when the checkpoint has none

  /// Status of what no tokenizer can work with: lists of different lengths, ids out of range.
  Status check() const;
  /// `id` must be in range, here and below.
  TokenType type(TokenId id) const;
  /// The value of a byte token, spelled "<0x0A>".
  std::optional<std::uint8_t> byte(TokenId id) const;
};

}  // namespace eider
