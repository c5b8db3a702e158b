// GgufValue: one metadata value of a GGUF file, read from the file's bytes when it is asked for. Writers mix
// up the integer types, so a number is asked for by what it means and not by how it is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace eider {

/// The numbering of the file format.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "u32", "string", ...; "unknown" for a number outside the list.
const char* gguf_type_name(GgufType type);
/// Bytes of one element; 0 for strings, arrays and numbers outside the list.
std::size_t gguf_type_bytes(GgufType type);

class GgufValue {
 public:
  /// `payload`: the elements as stored, strings with their lengths, already known to lie inside the file. A
  /// scalar is one element.
  GgufValue(GgufType element_type, bool is_array, std::uint64_t count, std::span<const std::byte> payload)
      : element_type_(element_type), is_array_(is_array), count_(count), payload_(payload) {}

  bool is_array() const { return is_array_; }
  std::uint64_t count() const { return count_; }

  /// Errors say what was expected and what was found; whoever knows the key adds it.
  Result<std::int64_t> integer() const;
  Result<double> number() const;
  Result<bool> boolean() const;
  Result<std::string_view> string() const;
  /// Arrays of integers or booleans (as 0 and 1).
  Result<std::vector<std::int64_t>> integers() const;
  Result<std::vector<double>> numbers() const;
  Result<std::vector<std::string_view>> strings() const;

  /// "a u32", "an array of 49152 x string"
  std::string description() const;

 private:
  Error expected(std::string_view what) const;

  GgufType element_type_;
  bool is_array_;
  std::uint64_t count_;
  std::span<const std::byte> payload_;
};

}  // namespace eider
