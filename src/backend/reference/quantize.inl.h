// Activations for the integer rules.

/// Quantises activations in groups of kUnit columns.
template <int kUnit>
inline void quantize(const QuantizeArgs& args, Items items) {
  constexpr int kSums = kUnit == 256 ? 16 : 1;
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
    for (int j = 0; j < kSums; ++j) {
      int sum = 0;
      for (int i = 0; i < kUnit / kSums; ++i) sum += codes[j * (kUnit / kSums) + i];
      args.out.sums[item * kSums + j] = static_cast<std::int16_t>(sum);
    }
  }
}
