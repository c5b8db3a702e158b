// Activations for the integer rules and for scaled floats.

/// sums[i] = codes[2 * i] + codes[2 * i + 1]
template <int count>
EIDER_ALWAYS_INLINE void add_pairs(const std::int32_t* codes, std::int32_t* sums) {
  for (int i = 0; i < count; ++i) sums[i] = codes[2 * i] + codes[2 * i + 1];
}

/// Quantises the kUnit columns at `x` into place `at` (unit * rows + row) of `out`.
template <int kUnit>
EIDER_ALWAYS_INLINE void quantize_unit(const float* x, const QuantizedRows& out, std::int64_t at) {
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

  std::int32_t codes[kUnit];
  if (greatest >= 0x7f800000u || a < 0x1p-100f) {
    for (int i = 0; i < kUnit; ++i) codes[i] = 0;
  } else {
    const float inverse = 127.0f / a;
    for (int i = 0; i < kUnit; ++i) codes[i] = static_cast<std::int32_t>(std::rint(x[i] * inverse));
  }
  std::int8_t bytes[kUnit];  // apart from what `out` points to, which might be anything to the compiler
  for (int i = 0; i < kUnit; ++i) bytes[i] = static_cast<std::int8_t>(codes[i]);
  __builtin_memcpy(out.codes + at * kUnit, bytes, kUnit);

  if constexpr (kUnit == 32) {
    std::int32_t first = 0, second = 0;
    for (int i = 0; i < 16; ++i) first += codes[i];
    for (int i = 16; i < 32; ++i) second += codes[i];
    out.corrections[2 * at] = -kQuantizedOffset32 * (first + second);
    out.corrections[2 * at + 1] = -kQuantizedOffset32 * second;
    out.unit_sums[at] = static_cast<float>(first + second);
  } else {
    std::int32_t of_2[128], of_4[64], of_8[32], of_16[16], of_32[8];
    add_pairs<128>(codes, of_2);
    add_pairs<64>(of_2, of_4);
    add_pairs<32>(of_4, of_8);
    add_pairs<16>(of_8, of_16);
    add_pairs<8>(of_16, of_32);
    std::int32_t* corrections = out.corrections + at * kCorrections256;
    for (int j = 0; j < 32; ++j) corrections[j] = (-kQuantizedOffset256 * of_8[j]) & 0xffff;
    for (int j = 0; j < 16; ++j) corrections[kCorrectionsOf16 + j] = -kQuantizedSignedOffset256 * of_16[j];
    for (int j = 0; j < 8; ++j) corrections[kCorrectionsOf32 + j] = -kQuantizedSignedOffset256 * of_32[j];
    std::int16_t* sums = out.sums + at * kSums256;
    for (int j = 0; j < 16; ++j) sums[j] = static_cast<std::int16_t>(of_16[j]);
    for (int j = 0; j < 8; ++j) sums[kSumsOf32 + j] = static_cast<std::int16_t>(of_32[j]);
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

/// Inputs times 2^exponent.
template <int exponent>
inline void scale_input(const ScaleInputArgs& args, Items rows) {
  constexpr std::uint32_t kZeroBelow = (127 - 97) << 23, kNanFrom = (127 + 28) << 23;  // 2^-97, 2^28
  const float factor = std::bit_cast<float>(static_cast<std::uint32_t>(127 + exponent) << 23);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* in = args.in + (args.input_rows == nullptr ? row : args.input_rows[row]) * args.columns;
    float* out = args.out + row * args.columns;
    for (std::int64_t i = 0; i < args.columns; ++i) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(in[i]) & 0x7fffffffu;
      const std::uint32_t scaled = std::bit_cast<std::uint32_t>(in[i] * factor);
      const std::uint32_t small = magnitude < kZeroBelow ? 0u : scaled;
      out[i] = std::bit_cast<float>(magnitude >= kNanFrom ? 0x7fc00000u : small);
    }
  }
}
