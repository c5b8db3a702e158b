// The tokenizer of a Hugging Face directory: tokenizer.json and the small files beside it.
#pragma once

#include <string>

#include "base/result.h"
#include "text/vocabulary.h"

namespace eider {

/// Whose rules a text is encoded and decoded by: those of the tokenizers package, which reads tokenizer.json
/// alone, or of transformers.
enum class AddSpecialRule : bool {
  kPostProcessor,   ///< tokenizer.json alone
  kTokenizerConfig  ///< tokenizer_config.json's add_bos_token, add_eos_token and
                    ///< clean_up_tokenization_spaces, where it has them
};

/// Reads `tokenizer_path`, a tokenizer.json, and what is there beside it: tokenizer_config.json (bos, eos,
/// padding, the chat template), special_tokens_map.json (the same tokens where that does not name them),
/// chat_template.jinja (which wins) or chat_template.json, and the end tokens of generation_config.h.
Result<Vocabulary> read_hf_vocabulary(const std::string& tokenizer_path, AddSpecialRule rule);

}  // namespace eider
