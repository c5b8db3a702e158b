// GgufWriter: writes a GGUF file (version 3) from metadata and tensors that lie in memory. For files that
// eider makes itself; what it writes, gguf.h reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"
#include "weights/gguf_value.h"

namespace eider {

class GgufWriter {
 public:
  GgufWriter& string(std::string_view key, std::string_view value);
  GgufWriter& u32(std::string_view key, std::int64_t value);
  GgufWriter& f32(std::string_view key, double value);
  GgufWriter& boolean(std::string_view key, bool value);
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values);
  GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& values);

  /// Writes the file in one pass, tensors in their order, and replaces `path` only when all of it is
  /// written; calls progress(bytes done, bytes in all) now and then, and gives up when that returns false.
  /// Fails with one line that names the path; no part of the file is left then.
  Status write(const std::string& path, const std::vector<TensorView>& tensors,
               const std::function<bool(std::int64_t, std::int64_t)>& progress = {}) const;

 private:
  GgufWriter& key(std::string_view key, GgufType type);
  GgufWriter& array(std::string_view key, GgufType type, std::size_t count);
  std::string header(const std::vector<TensorView>& tensors) const;

  std::string metadata_;
  std::uint64_t keys_ = 0;
};

}  // namespace eider
