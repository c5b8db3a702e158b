// Tokenizer: text to token ids and ids to bytes. Knows no model and no tensor.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace eider {

struct EncodeOptions {
  bool add_special = true;  ///< BOS / EOS where the vocabulary asks for them
  bool parse_special =
      true;  ///< control tokens written in the text become their ids (user-defined tokens always do)
  bool continues_text = false;  ///< other text stands before it: no space prefix at its start
  bool repeat_bos = false;      ///< adds BOS also where the text begins with it
};

class Tokenizer {
 public:
  /// Refuses unknown models and pre-tokenizers by name, and vocabularies that contradict themselves (lengths,
  /// merges of unknown pieces, ids out of range).
  static Result<Tokenizer> create(Vocabulary vocabulary);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Any bytes are accepted; invalid UTF-8 is kept byte for byte.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;

  /// The bytes a token stands for in running text; empty for control tokens and ids that are not in the
  /// vocabulary.
  std::string_view bytes(TokenId id) const;
  /// The token's own spelling, control tokens too, for people to look at.
  std::string_view piece(TokenId id) const;
  /// True for every id that ends the model's turn: eos, eot, eom, and control tokens known by their text.
  bool ends_turn(TokenId id) const;
  /// What decoding drops at the start of the whole output.
  LeadingSpace leading_space() const;
  bool strips_leading_space() const { return leading_space() != LeadingSpace::kKept; }

  const Vocabulary& vocabulary() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace eider
