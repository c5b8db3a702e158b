// The parts of a tokenizer.json around its model: normalizer, pre-tokenizer, decoder, post-processor.
#pragma once

#include "base/result.h"
#include "text/vocabulary.h"
#include "weights/json_element.h"

namespace eider {

/// `root`: the whole document. Sets everything in `vocabulary` that these parts say, `model` too: "gpt2"
/// where they are byte-level, else "bpe". Its tokens must be there. An unknown type is an error naming it.
Status read_tokenizer_pipeline(const JsonElement& root, Vocabulary& vocabulary);

}  // namespace eider
