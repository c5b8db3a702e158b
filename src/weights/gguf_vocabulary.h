// The tokenizer.* metadata of a GGUF file as a Vocabulary.
#pragma once

#include "base/result.h"
#include "text/vocabulary.h"
#include "weights/gguf.h"

namespace eider {

/// Works on files without tensors too. Lengths and ids are checked; an error names the key.
Result<Vocabulary> read_vocabulary(const GgufFile& file);

}  // namespace eider
