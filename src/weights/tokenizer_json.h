// tokenizer.json, the file that Hugging Face's tokenizers package writes, as a Vocabulary.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "text/vocabulary.h"

namespace eider {

/// Reads a BPE tokenizer, byte-level or over characters, or a Unigram one. What it is made of and cannot be
/// followed exactly is an error that names it. BOS and EOS are those that its post-processor adds.
Result<Vocabulary> parse_tokenizer_json(std::span<const std::byte> text);

}  // namespace eider
