// Products y = x * W^T over packed weights (packed.h), in the order of docs/NUMERICS.md: lanes run along
// rows, so a prefill tile and a decoded token are the same chains.

/// body(integral constant 0) .. body(integral constant count - 1), unrolled.
template <int count, class Body>
EIDER_ALWAYS_INLINE void unroll(Body body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, count>{});
}

/// Asks for `bytes` of the weights some way ahead of `at`: a decode step reads each byte once, in order,
/// faster than hardware prefetchers follow.
template <std::int64_t bytes>
EIDER_ALWAYS_INLINE void prefetch(const void* at) {
  constexpr std::int64_t kAhead = 4096;
  for (std::int64_t line = 0; line < bytes; line += 64)
    __builtin_prefetch(static_cast<const std::byte*>(at) + kAhead + line, 0, 3);
}

/// `count` rows of the input that are multiplied at a time.
template <int count>
struct InputTokens {
  std::int32_t row[count];
};

/// part[token][vector]: a unit's part of the products, before they are added by the tree.
template <int tokens, int vectors>
struct Parts {
  Floats part[tokens][vectors];
};

/// The codes of group `group` of a strip for the rows from `first_row` on.
template <class F, int group>
EIDER_ALWAYS_INLINE Codes group_codes(const std::byte* strip, std::int64_t first_row) {
  constexpr int kBits = UnitLayout<F>::kBits;
  constexpr std::int64_t kPlane = kRowTile * 4;
  const std::byte* rows = strip + first_row * 4;
  if constexpr (kBits == 8) return prepare_signed(load_codes(rows + group * kPlane));
  const Codes low = bits<group % 2 * 4, 15>(load_codes(rows + group / 2 * kPlane));
  const std::byte* high = rows + UnitLayout<F>::kHighPlane;
  if constexpr (kBits == 5) return low | bits<group - 4, 16>(load_codes(high));
  if constexpr (kBits == 6) return low | bits<group % 4 * 2 - 4, 48>(load_codes(high + group / 4 * kPlane));
  return low;
}

/// sum[token][vector] += the codes of groups [begin, end) of a strip times the input's.
template <class F, int begin, int end, int tokens, int vectors>
EIDER_ALWAYS_INLINE void dot_groups(const std::byte* strip, std::int64_t first_row,
                                    const std::int8_t* const (&x)[tokens], std::int64_t column,
                                    Ints (&sum)[tokens][vectors]) {
  unroll<end - begin>([&](auto index) __attribute__((always_inline)) {
    constexpr int kGroup = begin + decltype(index)::value;
    Codes codes[vectors];
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      codes[v] = group_codes<F, kGroup>(strip, first_row + v * kLanes);
    });
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      const std::int8_t* four = x[t] + column + kGroup * 4;
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        if constexpr (UnitLayout<F>::kBits == 8)
          sum[t][v] = dot4_signed(sum[t][v], codes[v], four);
        else
          sum[t][v] = dot4(sum[t][v], codes[v], four);
      });
    });
  });
}

template <class F, int tokens, int vectors, ProductRule rule = F::kProduct>
struct UnitProduct;

template <class F, int tokens, int vectors>
struct UnitProduct<F, tokens, vectors, ProductRule::kFloat> {
  static EIDER_ALWAYS_INLINE std::int64_t units(std::int64_t columns) { return (columns + 31) / 32; }

  static EIDER_ALWAYS_INLINE void multiply(const std::byte* tile, std::int64_t first_row, std::int64_t unit,
                                           std::int64_t columns, const ProductInput& in,
                                           const InputTokens<tokens>& rows, Parts<tokens, vectors>& parts) {
    const auto* elements =
        reinterpret_cast<const typename F::Block*>(tile) + unit * 32 * kRowTile + first_row;
    if constexpr (tokens == 1) prefetch<32 * kRowTile * sizeof(typename F::Block)>(elements);
    const std::int64_t left = columns - unit * 32;
    const std::int64_t count = left < 32 ? left : 32;
    const float* x[tokens];
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      x[t] = in.values + rows.row[t] * columns + unit * 32;
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { parts.part[t][v] = splat(0); });
    });
    for (std::int64_t k = 0; k < count; ++k) {
      Floats w[vectors];
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        w[v] = load_elements(elements + k * kRowTile + v * kLanes);
      });
      unroll<tokens>([&](auto t) __attribute__((always_inline)) {
        const Floats value = splat(x[t][k]);
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          parts.part[t][v] = fma(w[v], value, parts.part[t][v]);
        });
      });
    }
  }
};

template <class F, int tokens, int vectors>
struct UnitProduct<F, tokens, vectors, ProductRule::kInteger32> {
  using Layout = UnitLayout<F>;
  static constexpr int kOffset = PackedFormat<F>::kOffset + (Layout::kBits == 8 ? kSignedOffset : 0);

  static EIDER_ALWAYS_INLINE std::int64_t units(std::int64_t columns) { return columns / 32; }

  static EIDER_ALWAYS_INLINE void multiply(const std::byte* tile, std::int64_t first_row, std::int64_t unit,
                                           std::int64_t, const ProductInput& in,
                                           const InputTokens<tokens>& rows, Parts<tokens, vectors>& parts) {
    const std::byte* packed = tile + unit * Layout::kBytes;
    if constexpr (tokens == 1) prefetch<Layout::kBytes>(packed);
    const std::int64_t first = unit * in.quantized.rows;
    const std::int8_t* x[tokens];
    Ints sum[tokens][vectors];
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      x[t] = in.quantized.codes + (first + rows.row[t]) * 32;
      const Ints begin = splat_int(kOffset == 0 ? 0 : -kOffset * in.quantized.sums[first + rows.row[t]]);
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { sum[t][v] = begin; });
    });
    dot_groups<F, 0, 8>(packed, first_row, x, 0, sum);
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      const std::int64_t row = first_row + v * kLanes;
      const Floats scale = load_elements(reinterpret_cast<const F16::Block*>(packed + Layout::kScales) + row);
      Floats min = scale;
      if constexpr (F::kHasMin)
        min = load_elements(reinterpret_cast<const F16::Block*>(packed + Layout::kMinScales) + row);
      unroll<tokens>([&](auto t) __attribute__((always_inline)) {
        const Floats input_scale = splat(in.quantized.scales[first + rows.row[t]]);
        Floats part = to_floats(sum[t][v]) * (scale * input_scale);
        if constexpr (F::kHasMin)
          part = fma(min * input_scale, splat(in.quantized.sums[first + rows.row[t]]), part);
        parts.part[t][v] = part;
      });
    });
  }
};

template <class F, int tokens, int vectors>
struct UnitProduct<F, tokens, vectors, ProductRule::kInteger256> {
  using Layout = UnitLayout<F>;
  static constexpr int kOffset = PackedFormat<F>::kOffset;
  static constexpr int kScalesPerStrip = PackedFormat<F>::kSubScales / 8;
  static constexpr int kSumsPerScale = 2 / kScalesPerStrip;  // the input has one sum for each 16 columns

  static EIDER_ALWAYS_INLINE std::int64_t units(std::int64_t columns) { return columns / 256; }

  static EIDER_ALWAYS_INLINE void multiply(const std::byte* tile, std::int64_t first_row, std::int64_t unit,
                                           std::int64_t, const ProductInput& in,
                                           const InputTokens<tokens>& rows, Parts<tokens, vectors>& parts) {
    const std::byte* packed = tile + unit * Layout::kBytes;
    if constexpr (tokens == 1) prefetch<Layout::kBytes>(packed);
    const std::int64_t first = unit * in.quantized.rows;
    const std::int8_t* x[tokens];
    const std::int16_t* x_sums[tokens];
    Ints total[tokens][vectors];
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      x[t] = in.quantized.codes + (first + rows.row[t]) * 256;
      x_sums[t] = in.quantized.sums + (first + rows.row[t]) * 16;
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { total[t][v] = splat_int(0); });
    });
    for (std::int64_t strip = 0; strip < 8; ++strip) add_strip(packed, first_row, strip, x, x_sums, total);
    finish(packed, first_row, first, in, rows, x_sums, total, parts);
  }

 private:
  /// total += sub-scale * (codes . x) for one strip.
  static EIDER_ALWAYS_INLINE void add_strip(const std::byte* packed, std::int64_t first_row,
                                            std::int64_t strip, const std::int8_t* const (&x)[tokens],
                                            const std::int16_t* const (&x_sums)[tokens],
                                            Ints (&total)[tokens][vectors]) {
    unroll<kScalesPerStrip>([&](auto part) __attribute__((always_inline)) {
      constexpr int kGroups = 8 / kScalesPerStrip;
      constexpr int kBegin = decltype(part)::value * kGroups;
      const std::int64_t sub_scale = strip * kScalesPerStrip + part;
      Ints sum[tokens][vectors];
      unroll<tokens>([&](auto t) __attribute__((always_inline)) {
        const Ints begin = splat_int(kOffset == 0 ? 0 : -kOffset * x_sums[t][sub_scale]);
        unroll<vectors>([&](auto v) __attribute__((always_inline)) { sum[t][v] = begin; });
      });
      dot_groups<F, kBegin, kBegin + kGroups>(packed + strip * Layout::kStripBytes, first_row, x,
                                              strip * kStripColumns, sum);
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        const std::byte* from = packed + Layout::kSubScales + sub_scale * kRowTile + first_row + v * kLanes;
        const Ints scale = kOffset == 0 ? load_unsigned_bytes(from) : load_signed_bytes(from);
        unroll<tokens>([&](auto t)
                           __attribute__((always_inline)) { total[t][v] = total[t][v] + scale * sum[t][v]; });
      });
    });
    static_assert(kOffset == 0 || kSumsPerScale == 1);
  }

  /// part = total * (d * dx), less (dmin * dx) * sum of min * (sum of x) where the format has minima.
  static EIDER_ALWAYS_INLINE void finish(const std::byte* packed, std::int64_t first_row, std::int64_t first,
                                         const ProductInput& in, const InputTokens<tokens>& rows,
                                         const std::int16_t* const (&x_sums)[tokens],
                                         const Ints (&total)[tokens][vectors],
                                         Parts<tokens, vectors>& parts) {
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      const std::int64_t row = first_row + v * kLanes;
      const Floats scale = load_elements(reinterpret_cast<const F16::Block*>(packed + Layout::kScales) + row);
      Floats min_scale = scale;
      if constexpr (F::kHasMin)
        min_scale = load_elements(reinterpret_cast<const F16::Block*>(packed + Layout::kMinScales) + row);
      unroll<tokens>([&](auto t) __attribute__((always_inline)) {
        const Floats input_scale = splat(in.quantized.scales[first + rows.row[t]]);
        Floats part = to_floats(total[t][v]) * (scale * input_scale);
        if constexpr (F::kHasMin) {
          Ints min_total = splat_int(0);
          for (int pair = 0; pair < 4; ++pair) {
            const std::int16_t* sums = x_sums[t] + 4 * pair;
            min_total = dot2(min_total, packed + Layout::kMins + (pair * kRowTile + row) * 2,
                             sums[0] + sums[1], sums[2] + sums[3]);
          }
          part = negative_fma(min_scale * input_scale, to_floats(min_total), part);
        }
        parts.part[t][v] = part;
      });
    });
  }
};

/// The tree of docs/NUMERICS.md over units as they come: a binary counter of complete subtrees
/// (numerics.inl.h has it for one value; here a digit is a register tile). A tile goes to memory once a unit,
/// vector by vector: compilers copy whole tiles by way of the stack.
template <int tokens, int vectors>
class PartsTree {
 public:
  EIDER_ALWAYS_INLINE void add(Parts<tokens, vectors>& parts) {
    float* level = levels_[0];
    for (std::uint64_t digits = count_; (digits & 1) != 0; digits >>= 1, level += kTile)
      add_level(level, parts);
    ++count_;
    each([&](auto t, auto v)
             __attribute__((always_inline)) { store(level + (t * vectors + v) * kLanes, parts.part[t][v]); });
  }
  EIDER_ALWAYS_INLINE void total(Parts<tokens, vectors>& parts) {
    const int lowest = __builtin_ctzll(count_);
    float* level = levels_[lowest];
    each([&](auto t, auto v)
             __attribute__((always_inline)) { parts.part[t][v] = load(level + (t * vectors + v) * kLanes); });
    for (std::uint64_t digits = count_ >> lowest >> 1; digits != 0; digits >>= 1) {
      level += kTile;
      if ((digits & 1) != 0) add_level(level, parts);
    }
  }

 private:
  static constexpr int kTile = tokens * vectors * kLanes;

  template <class Body>
  static EIDER_ALWAYS_INLINE void each(Body body) {
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { body(t, v); });
    });
  }
  static EIDER_ALWAYS_INLINE void add_level(const float* level, Parts<tokens, vectors>& parts) {
    each([&](auto t, auto v) __attribute__((always_inline)) {
      parts.part[t][v] = load(level + (t * vectors + v) * kLanes) + parts.part[t][v];
    });
  }

  alignas(64) float levels_[20][kTile];  // 2^20 units and more columns than a matrix may have
  std::uint64_t count_ = 0;
};

/// Rows [first_row, first_row + vectors * kLanes) of a tile times `tokens` input rows.
template <class F, int tokens, int vectors>
EIDER_ALWAYS_INLINE void multiply_rows(const ProductArgs& args, std::int64_t tile, std::int64_t first_row,
                                       std::int64_t first_token) {
  using Unit = UnitProduct<F, tokens, vectors>;
  const std::byte* packed =
      args.weight.data + tile * args.weight.row_bytes;  // a packed matrix's "row" is a tile
  InputTokens<tokens> rows;
  for (int t = 0; t < tokens; ++t) rows.row[t] = args.input_rows[first_token + t];
  PartsTree<tokens, vectors> tree;
  Parts<tokens, vectors> parts;
  const std::int64_t units = Unit::units(args.weight.columns);
  for (std::int64_t unit = 0; unit < units; ++unit) {
    Unit::multiply(packed, first_row, unit, args.weight.columns, args.in, rows, parts);
    tree.add(parts);
  }
  tree.total(parts);
  for (int t = 0; t < tokens; ++t) {
    float* out = args.out + args.output_rows[first_token + t] * args.weight.rows;
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t row = tile * kRowTile + first_row + v * kLanes;
      float lanes[kLanes];
      store(lanes, parts.part[t][v]);
      for (int lane = 0; lane < kLanes && row + lane < args.weight.rows; ++lane)
        out[row + lane] = args.bias == nullptr ? lanes[lane] : lanes[lane] + args.bias[row + lane];
    }
  }
}

template <class F, int tokens>
EIDER_ALWAYS_INLINE void multiply_tile(const ProductArgs& args, std::int64_t tile, std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<F::kProduct, tokens>;
  for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
    multiply_rows<F, tokens, kRowVectors>(args, tile, row, first_token);
}

/// Tiles of `tokens` tokens as long as there are so many, then smaller ones.
template <class F, int tokens>
EIDER_ALWAYS_INLINE void multiply_tokens(const ProductArgs& args, std::int64_t tile, std::int64_t token) {
  for (; token + tokens <= args.count; token += tokens) multiply_tile<F, tokens>(args, tile, token);
  if constexpr (tokens > 1) multiply_tokens<F, tokens / 2>(args, tile, token);
}

template <class F>
inline void product(const ProductArgs& args, Items tiles) {
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile)
    multiply_tokens<F, kMostTokens>(args, tile, 0);
}
