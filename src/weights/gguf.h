// GgufFile: the header of one GGUF file (version 2 or 3), checked, as views into its bytes. Dimensions are
// turned into PyTorch order here. It knows neither architectures nor names: gguf_config, gguf_names and
// gguf_vocabulary read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"
#include "weights/data_tensor.h"
#include "weights/gguf_value.h"

namespace eider {

class GgufFile {
 public:
  /// `bytes`: a whole file, 8-byte aligned (a mapping is); it must outlive the result, whose keys, values and
  /// tensors point into it. Every claim of the header is checked against the file's size before it is used.
  static Result<GgufFile> parse(std::span<const std::byte> bytes);

  std::uint32_t version() const { return version_; }
  const std::map<std::string_view, GgufValue>& metadata() const { return metadata_; }
  /// The weights, in the file's order, under the file's names, in PyTorch shapes.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  /// Tensors of integers and of doubles, in the same way.
  const std::vector<DataTensor>& data_tensors() const { return data_tensors_; }

  const GgufValue* find(std::string_view key) const;

  /// A key's value, nothing when the file lacks the key, or an error that names the key.
  Result<std::optional<std::int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;

 private:
  GgufFile() = default;

  std::uint32_t version_ = 0;
  std::map<std::string_view, GgufValue> metadata_;
  std::vector<TensorView> tensors_;
  std::vector<DataTensor> data_tensors_;
};

}  // namespace eider
