#include "weights/gguf_value.h"

#include <cstring>
#include <limits>
#include <optional>

namespace eider {
namespace {

struct TypeInfo {
  const char* name;
  std::size_t bytes;
};

// Indexed by GgufType.
constexpr TypeInfo kTypes[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                               {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                               {"u64", 8}, {"i64", 8}, {"f64", 8}};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::optional<std::int64_t> read_integer(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kU8:
      return load<std::uint8_t>(at);
    case GgufType::kI8:
      return load<std::int8_t>(at);
    case GgufType::kU16:
      return load<std::uint16_t>(at);
    case GgufType::kI16:
      return load<std::int16_t>(at);
    case GgufType::kU32:
      return load<std::uint32_t>(at);
    case GgufType::kI32:
      return load<std::int32_t>(at);
    case GgufType::kI64:
      return load<std::int64_t>(at);
    case GgufType::kU64: {
      const auto value = load<std::uint64_t>(at);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> read_integer_or_bool(GgufType type, const std::byte* at) {
  if (type == GgufType::kBool) return load<std::uint8_t>(at) != 0 ? 1 : 0;
  return read_integer(type, at);
}

std::optional<double> read_number(GgufType type, const std::byte* at) {
  if (type == GgufType::kF32) return load<float>(at);
  if (type == GgufType::kF64) return load<double>(at);
  const std::optional<std::int64_t> value = read_integer(type, at);
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

/// The string at `at`, which is moved past it.
std::string_view read_string(const std::byte*& at) {
  const auto length = static_cast<std::size_t>(load<std::uint64_t>(at));
  const std::string_view text(reinterpret_cast<const char*>(at) + sizeof(std::uint64_t), length);
  at += sizeof(std::uint64_t) + length;
  return text;
}

/// All elements by read(type, at); nothing when one of them cannot be read.
template <class T, class Read>
std::optional<std::vector<T>> read_elements(GgufType type, std::uint64_t count, const std::byte* at,
                                            Read read) {
  std::vector<T> values;
  values.reserve(count);
  const std::size_t bytes = gguf_type_bytes(type);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::optional<T> value = read(type, at + i * bytes);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

}  // namespace

const char* gguf_type_name(GgufType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kTypes) ? kTypes[index].name : "unknown";
}

std::size_t gguf_type_bytes(GgufType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kTypes) ? kTypes[index].bytes : 0;
}

std::string GgufValue::description() const {
  if (is_array_) return fmt::format("an array of {} x {}", count_, gguf_type_name(element_type_));
  return fmt::format("a {}", gguf_type_name(element_type_));
}

Error GgufValue::expected(std::string_view what) const {
  return error("expected {}, found {}", what, description());
}

Result<std::int64_t> GgufValue::integer() const {
  const std::optional<std::int64_t> value =
      is_array_ ? std::nullopt : read_integer(element_type_, payload_.data());
  if (!value) return expected("an integer below 2^63");
  return *value;
}

Result<double> GgufValue::number() const {
  const std::optional<double> value = is_array_ ? std::nullopt : read_number(element_type_, payload_.data());
  if (!value) return expected("a number");
  return *value;
}

Result<bool> GgufValue::boolean() const {
  const std::optional<std::int64_t> value =
      is_array_ ? std::nullopt : read_integer_or_bool(element_type_, payload_.data());
  if (!value || (*value != 0 && *value != 1)) return expected("true or false");
  return *value == 1;
}

Result<std::string_view> GgufValue::string() const {
  if (is_array_ || element_type_ != GgufType::kString) return expected("a string");
  const std::byte* at = payload_.data();
  return read_string(at);
}

Result<std::vector<std::int64_t>> GgufValue::integers() const {
  if (!is_array_) return expected("an array of integers");
  auto values = read_elements<std::int64_t>(element_type_, count_, payload_.data(), read_integer_or_bool);
  if (!values) return expected("an array of integers");
  return *std::move(values);
}

Result<std::vector<double>> GgufValue::numbers() const {
  if (!is_array_) return expected("an array of numbers");
  auto values = read_elements<double>(element_type_, count_, payload_.data(), read_number);
  if (!values) return expected("an array of numbers");
  return *std::move(values);
}

Result<std::vector<std::string_view>> GgufValue::strings() const {
  if (!is_array_ || (element_type_ != GgufType::kString && count_ != 0))
    return expected("an array of strings");
  std::vector<std::string_view> texts;
  texts.reserve(count_);
  const std::byte* at = payload_.data();
  for (std::uint64_t i = 0; i < count_; ++i) texts.push_back(read_string(at));
  return texts;
}

}  // namespace eider
