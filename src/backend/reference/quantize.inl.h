// Activations for the integer rules.

template <int count>
EIDER_ALWAYS_INLINE std::int32_t sum_codes(const std::int8_t* codes) {
  std::int32_t sum = 0;
  for (int i = 0; i < count; ++i) sum += codes[i];
  return sum;
}

/// Quantises the kUnit columns at `x` into place `at` (unit * rows + row) of `out`.
template <int kUnit>
EIDER_ALWAYS_INLINE void quantize_unit(const float* x, const QuantizedRows& out, std::int64_t at) {
  std::int8_t* codes = out.codes + at * kUnit;
  // Magnitudes compare as integers do; infinities and NaN are the greatest.
  std::uint32_t greatest = 0;
  for (int i = 0; i < kUnit; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu;
    greatest = bits > greatest ? bits : greatest;
  }
  const float a = std::bit_cast<float>(greatest);
  float scale = a / 127.0f;
  if (greatest >= 0x7f800000u) scale = std::bit_cast<float>(0x7fc00000u);  // NaN
  if (a < 0x1p-100f) scale = 0;
  out.scales[at] = scale;

  if (greatest >= 0x7f800000u || a < 0x1p-100f) {
    for (int i = 0; i < kUnit; ++i) codes[i] = 0;
  } else {
    const float inverse = 127.0f / a;
    for (int i = 0; i < kUnit; ++i)
      codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(std::rint(x[i] * inverse)));
  }
  if constexpr (kUnit == 32) {
    out.corrections[at] = -kQuantizedOffset32 * sum_codes<32>(codes);
  } else {
    for (int j = 0; j < 32; ++j)
      out.corrections[at * 32 + j] = (-kQuantizedOffset256 * sum_codes<8>(codes + 8 * j)) & 0xffff;
    for (int j = 0; j < 8; ++j)
      out.sums[at * 8 + j] = static_cast<std::int16_t>(sum_codes<32>(codes + 32 * j));
  }
}

/// Quantises activations in groups of kUnit columns.
template <int kUnit>
inline void quantize(const QuantizeArgs& args, Items items) {
  const std::int64_t rows = args.out.rows;
  const std::int64_t block_items = kQuantizedBlock * (args.columns / kUnit);
  for (std::int64_t item = items.begin; item < items.end;) {
    const std::int64_t first = item / block_items * kQuantizedBlock;
    const std::int64_t count = rows - first < kQuantizedBlock ? rows - first : kQuantizedBlock;
    const std::int64_t in_block = item % block_items;  // unit * count + row
    const std::int64_t unit = in_block / count;
    for (std::int64_t row = first + in_block % count; row < first + count && item < items.end;
         ++row, ++item) {
      const std::int64_t input_row = args.input_rows == nullptr ? row : args.input_rows[row];
      quantize_unit<kUnit>(args.in + input_row * args.columns + unit * kUnit, args.out, unit * rows + row);
    }
  }
}
