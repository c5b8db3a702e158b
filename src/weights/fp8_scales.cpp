#include "weights/fp8_scales.h"

#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/float_bits.h"
#include "format/half.h"
#include "weights/printable.h"

namespace eider {
namespace {

constexpr std::int64_t kUsualBlock = 128;
constexpr std::int64_t kProductUnit = 32;  // of products, which apply a block's scale to whole units

/// quantization_config.weight_block_size, or block_structure of compressed-tensors; nothing where there is
/// neither.
Result<std::vector<std::int64_t>> configured_block(const Config& config) {
  std::vector<std::int64_t> none;
  if (!config.has("quantization_config")) return none;
  EIDER_TRY(const Config quantization, config.object("quantization_config"));
  if (quantization.has("weight_block_size")) return quantization.integers("weight_block_size");
  if (!quantization.has("config_groups")) return none;
  EIDER_TRY(const Config groups, quantization.object("config_groups"));
  for (const auto& [name, value] : groups.json().items()) {
    EIDER_TRY(const Config group, groups.object(name));
    if (!group.has("weights")) continue;
    EIDER_TRY(const Config weights, group.object("weights"));
    if (weights.has("block_structure")) return weights.integers("block_structure");
  }
  return none;
}

/// Scale `index` of a tensor, or nothing where its dtype is no scale's.
std::optional<float> scale_at(const SafetensorsFile::Entry& entry, std::size_t index) {
  const auto bits = [&]<class T>(T number) {
    std::memcpy(&number, entry.bytes.data() + index * sizeof number, sizeof number);
    return number;
  };
  if (entry.dtype == "F32") return bits_float(bits(std::uint32_t{}));
  if (entry.dtype == "BF16") return bfloat16_to_float(bits(std::uint16_t{}));
  if (entry.dtype == "F16") return half_to_float(bits(std::uint16_t{}));
  if (entry.dtype == "F8_E8M0" || entry.dtype == "U8") {  // 2^(e - 127); 255 is NaN
    const std::uint32_t e = bits(std::uint8_t{});
    return bits_float(e == 255 ? 0x7fc00000u : e == 0 ? 0x00400000u : e << 23);
  }
  return std::nullopt;
}

}  // namespace

Result<Fp8Scales> Fp8Scales::create(const Config& config, Find find) {
  EIDER_TRY(std::vector<std::int64_t> block, configured_block(config));
  if (block.empty()) block = {kUsualBlock, kUsualBlock};
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (block.size() != 2 || block[0] < 1 || block[0] > kMost || block[1] < 1 || block[1] > kMost ||
      block[1] % kProductUnit != 0)
    return error(
        "{}: quantization_config: blocks of FP8 scales must be [rows, columns] with a multiple of {} columns",
        config.origin(), kProductUnit);
  return Fp8Scales(std::move(find), block[0], block[1]);
}

Result<BlockScales> Fp8Scales::blocks(const Shape& shape, const Shape& scales_shape,
                                      bool blocks_first) const {
  const bool fused = shape.rank() == 3;
  const std::int64_t rows = shape[shape.rank() - 2];
  const std::int64_t row_blocks = (rows + block_rows_ - 1) / block_rows_;
  const std::int64_t column_blocks = (shape.columns() + block_columns_ - 1) / block_columns_;
  const Shape of_blocks =
      fused ? Shape{shape[0], row_blocks, column_blocks} : Shape{row_blocks, column_blocks};
  // ModelOpt keeps the dimensions within a block, as 1.
  const bool is_blocks =
      scales_shape == of_blocks || (!fused && scales_shape == Shape{row_blocks, 1, column_blocks, 1});
  const bool is_one = fused ? scales_shape == Shape{shape[0]} || scales_shape == Shape{shape[0], 1, 1}
                            : scales_shape.elements() == 1;
  const bool is_rows = fused
                           ? scales_shape == Shape{shape[0], rows, 1} || scales_shape == Shape{shape[0], rows}
                           : scales_shape == Shape{rows} || scales_shape == Shape{rows, 1};
  if (is_blocks && (blocks_first || (!is_one && !is_rows)))
    return BlockScales{nullptr, block_rows_, block_columns_, column_blocks, 0};
  if (is_one) return BlockScales{nullptr, rows, 0, 1, 0};
  if (is_rows) return BlockScales{nullptr, 1, 0, 1, 0};
  return error("shape {}, expected {} (blocks of {} x {}), one for each row, or one", scales_shape.text(),
               of_blocks.text(), block_rows_, block_columns_);
}

Result<OwnedScales> Fp8Scales::read(const std::string& name, const Shape& shape) const {
  if (shape.rank() != 2 && shape.rank() != 3) return error("FP8 weights must be matrices");
  if (shape.elements() == 0) return error("FP8 weights must have elements");
  std::string scales_name = name + "_scale_inv";
  const SafetensorsFile::Entry* entry = find_(scales_name);
  const bool blocks_first = entry != nullptr;  // the name belongs to blocks
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::string> others = {name + "_scale"};
  if (name.ends_with(kWeight)) others.push_back(name.substr(0, name.size() - kWeight.size()) + ".scale");
  for (std::size_t i = 0; entry == nullptr && i < others.size(); ++i) {
    scales_name = others[i];
    entry = find_(scales_name);
  }
  if (entry == nullptr)
    return error("its scales are missing: neither {} nor {} is there", printable(name + "_scale_inv"),
                 printable(name + "_scale"));

  EIDER_TRY(BlockScales scales,
            blocks(shape, entry->shape, blocks_first).context("its scales " + printable(scales_name)));
  const auto count = static_cast<std::size_t>(entry->shape.elements());
  EIDER_TRY(Buffer buffer, Buffer::allocate(count * sizeof(float)));
  auto* values = reinterpret_cast<float*>(buffer.data());
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<float> scale = scale_at(*entry, i);
    if (!scale)
      return error("its scales {} have dtype {}; scales must be F32, BF16, F16 or F8_E8M0",
                   printable(scales_name), entry->dtype);
    if (!std::isfinite(*scale))
      return error("its scale {} of {} is not a finite number", i, printable(scales_name));
    values[i] = *scale;
  }
  scales.values = values;
  return OwnedScales{std::move(buffer), scales};
}

}  // namespace eider
