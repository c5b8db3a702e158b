// Activations for the integer rules.

template <int count>
EIDER_ALWAYS_INLINE std::int32_t sum_codes(const std::int8_t* codes) {
  std::int32_t sum = 0;
  for (int i = 0; i < count; ++i) sum += codes[i];
  return sum;
}

/// Quantises activations in groups of kUnit columns.
template <int kUnit>
inline void quantize(const QuantizeArgs& args, Items items) {
  for (std::int64_t item = items.begin; item < items.end; ++item) {  // unit * rows + row
    const std::int64_t unit = item / args.out.rows;
    const std::int64_t row = item % args.out.rows;
    const float* x = args.in + row * args.columns + unit * kUnit;
    std::int8_t* codes = args.out.codes + item * kUnit;

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
    args.out.scales[item] = scale;

    if (greatest >= 0x7f800000u || a < 0x1p-100f) {
      for (int i = 0; i < kUnit; ++i) codes[i] = 0;
    } else {
      const float inverse = 127.0f / a;
      for (int i = 0; i < kUnit; ++i)
        codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(std::rint(x[i] * inverse)));
    }
    if constexpr (kUnit == 32) {
      args.out.corrections[item] = -kQuantizedOffset32 * sum_codes<32>(codes);
    } else {
      for (int j = 0; j < 32; ++j)
        args.out.corrections[item * 32 + j] = (-kQuantizedOffset256 * sum_codes<8>(codes + 8 * j)) & 0xffff;
      for (int j = 0; j < 8; ++j)
        args.out.sums[item * 8 + j] = static_cast<std::int16_t>(sum_codes<32>(codes + 32 * j));
    }
  }
}
