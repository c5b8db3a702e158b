// GgufWriter: makes small GGUF files for tests, straight from the format's description and sharing nothing
// with the reader. Its fields can be set to wrong values on purpose.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/format.h"
#include "tests/support/temp_dir.h"

namespace eider::test {

/// ggml's number of a format.
inline std::uint32_t ggml_type(Format format) {
  constexpr std::pair<Format, std::uint32_t> kNumbers[] = {
      {Format::kF32, 0},     {Format::kF16, 1},      {Format::kBF16, 30},   {Format::kQ4_0, 2},
      {Format::kQ4_1, 3},    {Format::kQ5_0, 6},     {Format::kQ5_1, 7},    {Format::kQ8_0, 8},
      {Format::kQ4_K, 12},   {Format::kQ5_K, 13},    {Format::kQ6_K, 14},   {Format::kQ2_K, 10},
      {Format::kQ3_K, 11},   {Format::kIQ2_XXS, 16}, {Format::kIQ2_XS, 17}, {Format::kIQ3_XXS, 18},
      {Format::kIQ1_S, 19},  {Format::kIQ4_NL, 20},  {Format::kIQ3_S, 21},  {Format::kIQ2_S, 22},
      {Format::kIQ4_XS, 23}, {Format::kIQ1_M, 29},   {Format::kTQ1_0, 34},  {Format::kTQ2_0, 35},
      {Format::kMXFP4, 39},  {Format::kNVFP4, 40},   {Format::kQ1_0, 41}};
  for (const auto& [known, number] : kNumbers)
    if (known == format) return number;
  throw std::logic_error("a format the GGUF writer does not know");
}

/// The bytes of numbers as they lie in memory: bytes_of(std::vector<float>{1, 2}).
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

class GgufWriter {
 public:
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;  ///< PyTorch order; the file gets it reversed
    std::uint32_t type = 0;           ///< ggml's number
    std::string data;
    std::optional<std::uint64_t> offset;  ///< instead of the right one
  };

  std::uint32_t version = 3;
  std::uint64_t alignment =
      32;  ///< of the layout; write the key general.alignment yourself to announce another one
  std::optional<std::uint64_t> claimed_tensors;  ///< instead of the right counts
  std::optional<std::uint64_t> claimed_metadata;

  /// Integers and floats by their C++ type, bool, text, and vectors of these.
  template <class T>
  GgufWriter& metadata(std::string_view key, const T& value) {
    put_string(metadata_, key);
    if constexpr (is_vector<T>) {
      put(metadata_, std::uint32_t{9});
      put(metadata_, type_number<typename T::value_type>());
      put(metadata_, static_cast<std::uint64_t>(value.size()));
      for (const auto& element : value) put_value(metadata_, static_cast<typename T::value_type>(element));
    } else {
      put(metadata_, type_number<T>());
      put_value(metadata_, value);
    }
    ++metadata_count_;
    return *this;
  }
  GgufWriter& metadata(std::string_view key, const char* text) { return metadata(key, std::string(text)); }

  /// A key and whatever bytes follow it (type number first): for damaged files.
  GgufWriter& raw_metadata(std::string_view key, std::string_view bytes) {
    put_string(metadata_, key);
    metadata_ += bytes;
    ++metadata_count_;
    return *this;
  }

  GgufWriter& tensor(Tensor tensor) {
    tensors_.push_back(std::move(tensor));
    return *this;
  }
  GgufWriter& tensor(std::string name, std::vector<std::int64_t> shape, Format format, std::string data) {
    return tensor({std::move(name), std::move(shape), ggml_type(format), std::move(data), std::nullopt});
  }
  GgufWriter& tensor(std::string name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
    return tensor(std::move(name), std::move(shape), Format::kF32, bytes_of(values));
  }

  /// The whole file.
  std::string bytes() const {
    std::string header = "GGUF";
    put(header, version);
    put(header, claimed_tensors.value_or(tensors_.size()));
    put(header, claimed_metadata.value_or(metadata_count_));
    header += metadata_;
    std::string data;
    for (const Tensor& tensor : tensors_) {
      put_string(header, tensor.name);
      put(header, static_cast<std::uint32_t>(tensor.shape.size()));
      for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) put(header, *dim);
      put(header, tensor.type);
      put(header, tensor.offset.value_or(data.size()));
      data += tensor.data;
      pad(data);
    }
    pad(header);
    return header + data;
  }

  void write(const std::string& path) const { write_file(path, bytes()); }

  /// Writes DIR/NAME-0000I-of-0000N.gguf for the parts, adding the split.* keys, and returns the first one's
  /// path.
  static std::string write_split(const TempDir& directory, std::string_view name,
                                 std::vector<GgufWriter> parts) {
    std::size_t tensor_count = 0;
    for (const GgufWriter& part : parts) tensor_count += part.tensors_.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].metadata("split.no", static_cast<std::uint16_t>(i));
      parts[i].metadata("split.count", static_cast<std::uint16_t>(parts.size()));
      parts[i].metadata("split.tensors.count", static_cast<std::int32_t>(tensor_count));
      parts[i].write(directory.file(split_name(name, i + 1, parts.size())));
    }
    return directory.file(split_name(name, 1, parts.size()));
  }

  /// "NAME-00001-of-00003.gguf"
  static std::string split_name(std::string_view name, std::size_t part, std::size_t count) {
    const auto five_digits = [](std::size_t n) {
      const std::string digits = std::to_string(n);
      return std::string(5 - digits.size(), '0') + digits;
    };
    return std::string(name) + "-" + five_digits(part) + "-of-" + five_digits(count) + ".gguf";
  }

 private:
  template <class T>
  static std::uint32_t type_number() {
    if constexpr (std::is_same_v<T, bool>)
      return 7;
    else if constexpr (std::is_same_v<T, std::string>)
      return 8;
    else if constexpr (std::is_same_v<T, float>)
      return 6;
    else if constexpr (std::is_same_v<T, double>)
      return 12;
    else if constexpr (sizeof(T) == 1)
      return std::is_signed_v<T> ? 1 : 0;
    else if constexpr (sizeof(T) == 2)
      return std::is_signed_v<T> ? 3 : 2;
    else if constexpr (sizeof(T) == 4)
      return std::is_signed_v<T> ? 5 : 4;
    else
      return std::is_signed_v<T> ? 11 : 10;
  }

  template <class T>
  static void put(std::string& out, const T& number) {
    static_assert(std::is_arithmetic_v<T>);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));
    out.append(bytes, sizeof(T));
  }
  static void put_string(std::string& out, std::string_view text) {
    put(out, static_cast<std::uint64_t>(text.size()));
    out += text;
  }
  template <class T>
  static void put_value(std::string& out, const T& value) {
    if constexpr (std::is_same_v<T, std::string>)
      put_string(out, value);
    else
      put(out, value);
  }
  void pad(std::string& out) const { out.resize((out.size() + alignment - 1) / alignment * alignment); }

  std::string metadata_;
  std::uint64_t metadata_count_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace eider::test
