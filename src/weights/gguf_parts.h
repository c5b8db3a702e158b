// The files of a GGUF model: one, or the parts NAME-00001-of-0000N.gguf of a split one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "weights/gguf.h"

namespace eider {

struct GgufPart {
  MappedFile file;
  GgufFile header;
};

/// All parts in order, each checked on its own and against the others; `path` is the first. Metadata and
/// tokenizer are the first part's. Errors name the files that are missing.
Result<std::vector<GgufPart>> open_gguf_parts(const std::string& path);

/// The tensor of that name in any of the parts, or nothing.
const TensorView* find_tensor(const std::vector<GgufPart>& parts, std::string_view name);

}  // namespace eider
