#include "weights/gguf_tensor_type.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "format/storage_format.h"

namespace eider {
namespace {

struct TensorType {
  std::uint32_t id;
  const char* name;
  std::optional<Format> format;  // nothing: eider cannot read it yet
};

// Types of weights by ggml's numbering. 4, 5, 31 to 33 and 36 to 38 were removed from it; forks use numbers
// from 43 on.
constexpr TensorType kTensorTypes[] = {
    {0, "F32", Format::kF32},        {1, "F16", Format::kF16},          {2, "Q4_0", Format::kQ4_0},
    {3, "Q4_1", Format::kQ4_1},      {6, "Q5_0", Format::kQ5_0},        {7, "Q5_1", Format::kQ5_1},
    {8, "Q8_0", Format::kQ8_0},      {9, "Q8_1", std::nullopt},         {10, "Q2_K", Format::kQ2_K},
    {11, "Q3_K", Format::kQ3_K},     {12, "Q4_K", Format::kQ4_K},       {13, "Q5_K", Format::kQ5_K},
    {14, "Q6_K", Format::kQ6_K},     {15, "Q8_K", std::nullopt},        {16, "IQ2_XXS", Format::kIQ2_XXS},
    {17, "IQ2_XS", Format::kIQ2_XS}, {18, "IQ3_XXS", Format::kIQ3_XXS}, {19, "IQ1_S", Format::kIQ1_S},
    {20, "IQ4_NL", Format::kIQ4_NL}, {21, "IQ3_S", Format::kIQ3_S},     {22, "IQ2_S", Format::kIQ2_S},
    {23, "IQ4_XS", Format::kIQ4_XS}, {29, "IQ1_M", Format::kIQ1_M},     {30, "BF16", Format::kBF16},
    {34, "TQ1_0", Format::kTQ1_0},   {35, "TQ2_0", Format::kTQ2_0},     {39, "MXFP4", Format::kMXFP4},
    {40, "NVFP4", Format::kNVFP4},   {41, "Q1_0", Format::kQ1_0},       {42, "Q2_0", std::nullopt},
};

constexpr std::pair<std::uint32_t, GgufDataType> kDataTypes[] = {
    {24, {"I8", 1}}, {25, {"I16", 2}}, {26, {"I32", 4}}, {27, {"I64", 8}}, {28, {"F64", 8}}};

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

std::optional<GgufDataType> gguf_data_type(std::uint32_t type) {
  for (const auto& [id, data_type] : kDataTypes)
    if (id == type) return data_type;
  return std::nullopt;
}

std::uint32_t gguf_tensor_type(Format format) {
  const auto* found = std::ranges::find(kTensorTypes, std::optional(format), &TensorType::format);
  EIDER_CHECK(found != std::end(kTensorTypes));
  return found->id;
}

}  // namespace eider
