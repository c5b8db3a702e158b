#include "weights/gguf_tensor_type.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "format/storage_format.h"

namespace eider {
namespace {

struct TensorType {
  std::uint32_t id;
  const char* name;
  std::optional<Format> format;  // nothing: eider cannot read it yet
};

// ggml's numbering. 4, 5, 31 to 33 and 36 to 38 were removed from it; forks use numbers from 43 on.
constexpr TensorType kTensorTypes[] = {
    {0, "F32", Format::kF32},     {1, "F16", Format::kF16},      {2, "Q4_0", Format::kQ4_0},
    {3, "Q4_1", Format::kQ4_1},   {6, "Q5_0", Format::kQ5_0},    {7, "Q5_1", Format::kQ5_1},
    {8, "Q8_0", Format::kQ8_0},   {9, "Q8_1", std::nullopt},     {10, "Q2_K", std::nullopt},
    {11, "Q3_K", std::nullopt},   {12, "Q4_K", Format::kQ4_K},   {13, "Q5_K", Format::kQ5_K},
    {14, "Q6_K", Format::kQ6_K},  {15, "Q8_K", std::nullopt},    {16, "IQ2_XXS", std::nullopt},
    {17, "IQ2_XS", std::nullopt}, {18, "IQ3_XXS", std::nullopt}, {19, "IQ1_S", std::nullopt},
    {20, "IQ4_NL", std::nullopt}, {21, "IQ3_S", std::nullopt},   {22, "IQ2_S", std::nullopt},
    {23, "IQ4_XS", std::nullopt}, {24, "I8", std::nullopt},      {25, "I16", std::nullopt},
    {26, "I32", std::nullopt},    {27, "I64", std::nullopt},     {28, "F64", std::nullopt},
    {29, "IQ1_M", std::nullopt},  {30, "BF16", Format::kBF16},   {34, "TQ1_0", std::nullopt},
    {35, "TQ2_0", std::nullopt},  {39, "MXFP4", std::nullopt},   {40, "NVFP4", std::nullopt},
    {41, "Q1_0", std::nullopt},   {42, "Q2_0", std::nullopt},
};

std::string readable_types() {
  std::string names;
  for (const TensorType& type : kTensorTypes)
    if (type.format) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

}  // namespace

Result<Format> gguf_tensor_format(std::uint32_t type) {
  for (const TensorType& known : kTensorTypes) {
    if (known.id != type) continue;
    if (known.format) return *known.format;
    return error("type {} (number {}) is not supported; supported are {}", known.name, type,
                 readable_types());
  }
  return error("type number {} is unknown (removed from GGUF, or of a fork); supported are {}", type,
               readable_types());
}

std::uint32_t gguf_tensor_type(Format format) {
  const auto* found = std::ranges::find(kTensorTypes, std::optional(format), &TensorType::format);
  EIDER_CHECK(found != std::end(kTensorTypes));
  return found->id;
}

}  // namespace eider
