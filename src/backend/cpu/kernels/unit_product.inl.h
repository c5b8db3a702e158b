// The part that one unit of columns adds to products, in the order of docs/NUMERICS.md: lanes run along rows,
// so a prefill tile and a decoded token are the same chains.

/// part[token][vector]: a unit's part of the products, before they are added by the tree.
template <int tokens, int vectors>
struct Parts {
  Floats part[tokens][vectors];
};

/// Units of a contraction of `columns`.
template <ProductRule rule>
EIDER_ALWAYS_INLINE std::int64_t units_of(std::int64_t columns) {
  return rule == ProductRule::kInteger256 ? columns / 256 : (columns + 31) / 32;
}

/// Units of kFours that are multiplied side by side: one alone is too few bytes for the latency of its
/// chains.
template <int vectors>
inline constexpr int kUnitsAtOnce = vectors < 8 ? 8 / vectors : 1;

/// multiply(): the parts of unit `unit`, which lies at `weights`, for `vectors` vectors of the weight's rows
/// from `first_row` on, and the input's rows from `first_token` on. Source: Packed, Opened or Staged.
template <class Source, int tokens, int vectors, UnitKind kind = Source::kKind>
struct UnitProduct;

template <class Source, int tokens, int vectors>
struct UnitProduct<Source, tokens, vectors, UnitKind::kFloat> {
  static EIDER_ALWAYS_INLINE void multiply(const std::byte* weights, std::int64_t first_row,
                                           std::int64_t unit, std::int64_t columns, const ProductInput& in,
                                           std::int64_t first_token, Parts<tokens, vectors>& parts) {
    const std::byte* column = weights;
    const std::int64_t left = columns - unit * 32;
    const std::int64_t count = left < 32 ? left : 32;
    const float* x[tokens];
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      x[t] = in.values + (first_token + t) * columns + unit * 32;
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { parts.part[t][v] = splat(0); });
    });
    for (std::int64_t k = 0; k < count; ++k, column += Source::kColumnBytes) {
      prefetch<Source::kInOrder, Source::kColumnBytes>(column);
      Floats w[vectors];
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        w[v] = Source::elements(column, first_row + v * kLanes);
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

template <class Source, int vectors>
struct UnitProduct<Source, 1, vectors, UnitKind::kFours> {
  /// The parts of `units` units side by side, all of them whole: a chain alone waits for its own sums.
  template <int units>
  static EIDER_ALWAYS_INLINE void multiply_whole(const std::byte* weights, std::int64_t first_row,
                                                 std::int64_t unit, std::int64_t columns,
                                                 const ProductInput& in, std::int64_t token,
                                                 Parts<1, vectors> (&parts)[units]) {
    const float* x = in.values + token * columns + unit * kStripColumns;
    typename Source::Signs signs[units][vectors];
    begin(weights, first_row, signs, parts);
    unsigned subnormal[units];
    unroll<units>([&](auto u) __attribute__((always_inline)) {
      subnormal[u] = Source::subnormal_groups(weights + u * Source::kBytes, unit + u);
    });
    for (std::int64_t group = 0; group < 8; ++group, x += 4)
      unroll<units>([&](auto u) __attribute__((always_inline)) {
        const std::byte* from = weights + u * Source::kBytes;
        const float* group_x = x + u * kStripColumns;
        prefetch<true, kPlane>(from + Source::kCodes + group * kPlane);
        if (subnormal[u] >> group & 1)
          add_group<true>(from, first_row, group, group_x, signs[u], parts[u]);
        else
          add_group<false>(from, first_row, group, group_x, signs[u], parts[u]);
      });
    end(parts);
  }

  static EIDER_ALWAYS_INLINE void multiply(const std::byte* weights, std::int64_t first_row,
                                           std::int64_t unit, std::int64_t columns, const ProductInput& in,
                                           std::int64_t token, Parts<1, vectors>& parts) {
    Parts<1, vectors> several[1];
    if (columns - unit * kStripColumns >= kStripColumns)
      multiply_whole<1>(weights, first_row, unit, columns, in, token, several);
    else
      multiply_short(weights, first_row, unit, columns, in, token, several);
    parts = several[0];
  }

 private:
  /// A group's products. CPUs may multiply subnormal floats by microcode, hundreds of cycles each; they add
  /// them as fast as others.
  template <bool subnormal>
  static EIDER_ALWAYS_INLINE void add_group(const std::byte* unit, std::int64_t first_row, std::int64_t group,
                                            const float* x, typename Source::Signs (&signs)[vectors],
                                            Parts<1, vectors>& parts) {
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      Floats values[4];
      Source::take(unit, group, first_row + v * kLanes, signs[v], values);
      unroll<4>([&](auto i) __attribute__((always_inline)) {
        Floats& part = parts.part[0][v];
        if constexpr (subnormal) {
          const Floats twice = values[i] + values[i], fourfold = twice + twice;
          part = fma(fourfold + fourfold, splat(x[i]) * splat(0.125f), part);
        } else {
          part = fma(values[i], splat(x[i]), part);
        }
      });
    });
  }
  /// Exact: what inputs may be keeps sums of small values from being rounded as subnormals.
  template <int units>
  static EIDER_ALWAYS_INLINE void end(Parts<1, vectors> (&parts)[units]) {
    if constexpr (Source::kSumFactor != 1)
      unroll<units>([&](auto u) __attribute__((always_inline)) {
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          parts[u].part[0][v] = parts[u].part[0][v] * splat(Source::kSumFactor);
        });
      });
  }
  template <int units>
  static EIDER_ALWAYS_INLINE void begin(const std::byte* weights, std::int64_t first_row,
                                        typename Source::Signs (&signs)[units][vectors],
                                        Parts<1, vectors> (&parts)[units]) {
    unroll<units>([&](auto u) __attribute__((always_inline)) {
      const std::byte* from = weights + u * Source::kBytes;
      prefetch<true, Source::kCodes>(from);
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        signs[u][v] = Source::signs(from, first_row + v * kLanes);
        parts[u].part[0][v] = splat(0);
      });
    });
  }

  /// A last unit of fewer than 32 columns: those that fill it up must not be added, for +0 + -0 is not -0.
  static EIDER_ALWAYS_INLINE void multiply_short(const std::byte* weights, std::int64_t first_row,
                                                 std::int64_t unit, std::int64_t columns,
                                                 const ProductInput& in, std::int64_t token,
                                                 Parts<1, vectors> (&parts)[1]) {
    const float* x = in.values + token * columns + unit * kStripColumns;
    const std::int64_t count = columns - unit * kStripColumns;
    typename Source::Signs signs[1][vectors];
    begin(weights, first_row, signs, parts);
    for (std::int64_t group = 0; group * 4 < count; ++group)
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        Floats values[4];
        Source::take(weights, group, first_row + v * kLanes, signs[0][v], values);
        unroll<4>([&](auto i) __attribute__((always_inline)) {
          Floats& part = parts[0].part[0][v];
          if (group * 4 + i < count) part = fma(values[i], splat(x[group * 4 + i]), part);
        });
      });
    end(parts);
  }
};

/// What makes up for `offset` on codes, from a correction for 128.
template <int offset>
EIDER_ALWAYS_INLINE Ints correction_of(std::int32_t correction) {
  if constexpr (offset == 0)
    return splat_int(0);
  else
    return shift_right<__builtin_ctz(128 / offset)>(splat_int(correction));
}

/// sum[token] = what makes up for the offset on `Source`'s codes, where 128 would take correction(token).
template <class Source, int tokens, int vectors, class Correction>
EIDER_ALWAYS_INLINE void begin_sums(Ints (&sum)[tokens][vectors], Correction correction) {
  unroll<tokens>([&](auto t) __attribute__((always_inline)) {
    const Ints begin = correction_of<Source::kOffset>(correction(t));
    unroll<vectors>([&](auto v) __attribute__((always_inline)) { sum[t][v] = begin; });
  });
}

/// sum[token] += the codes of `groups` groups of `strip`, from `first` on, times the input's codes of these
/// groups, of which a row has `stride` from `x` on.
template <class Source, int first, int groups, std::int64_t stride, int tokens, int vectors>
EIDER_ALWAYS_INLINE void add_groups(const std::byte* strip, std::int64_t first_row, const std::int8_t* x,
                                    Ints (&sum)[tokens][vectors]) {
  constexpr int kGroups =
      kDotGroups<Source::kDotBits>;  // whose dot products are added before they are widened
  unroll<groups / kGroups>([&](auto part) __attribute__((always_inline)) {
    constexpr int kBegin = decltype(part)::value * kGroups;
    Codes codes[vectors][kGroups];
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      unroll<kGroups>([&](auto i) __attribute__((always_inline)) {
        codes[v][i] =
            Source::template codes<first + kBegin + decltype(i)::value>(strip, first_row + v * kLanes);
      });
    });
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        if constexpr (Source::kSigned)
          sum[t][v] = dot4_signed(sum[t][v], codes[v][0], x + t * stride + kBegin * 4);
        else
          sum[t][v] = dot(sum[t][v], codes[v], x + t * stride + kBegin * 4);
      });
    });
  });
}

template <class Source, int tokens, int vectors>
struct UnitProduct<Source, tokens, vectors, UnitKind::kInteger32> {
  static EIDER_ALWAYS_INLINE void multiply(const std::byte* weights, std::int64_t first_row,
                                           std::int64_t unit, std::int64_t, const ProductInput& in,
                                           std::int64_t first_token, Parts<tokens, vectors>& parts) {
    const std::int64_t first = unit * in.quantized.rows + first_token;
    const std::int8_t* x = in.quantized.codes + first * 32;
    Ints sum[tokens][vectors];
    begin_sums<Source>(
        sum, [&](auto t)
                 __attribute__((always_inline)) { return in.quantized.corrections[2 * (first + t)]; });
    unroll<2>([&](auto half) __attribute__((always_inline)) {
      constexpr int kBegin = decltype(half)::value * 4;
      prefetch<Source::kInOrder, Source::kStripBytes / 2>(weights + kBegin * Source::kStripBytes / 8);
      add_groups<Source, kBegin, 4, 32>(weights, first_row, x + kBegin * 4, sum);
    });
    prefetch<Source::kInOrder, Source::kBytes - Source::kStripBytes>(weights + Source::kStripBytes);
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      const std::int64_t row = first_row + v * kLanes;
      const Floats scale = Source::scale(weights, row);
      unroll<tokens>([&](auto t) __attribute__((always_inline)) {
        const Floats input_scale = splat(in.quantized.scales[first + t]);
        Floats part = to_floats(sum[t][v]) * (scale * input_scale);
        if constexpr (Source::kHasMin)
          part = fma(Source::min_scale(weights, row) * input_scale, splat(in.quantized.unit_sums[first + t]),
                     part);
        parts.part[t][v] = part;
      });
    });
  }
};

/// part = total * (d * dx), less (dmin * dx) * sum of min * (sum of x) where the unit has minima.
template <class Source, int tokens, int vectors>
EIDER_ALWAYS_INLINE void finish_256(const std::byte* weights, std::int64_t first_row, const QuantizedRows& in,
                                    std::int64_t first, const Ints (&total)[tokens][vectors],
                                    Parts<tokens, vectors>& parts) {
  constexpr int kPairs = Source::kSubMinPairs;
  constexpr std::int64_t kSums = kPairs == 8 ? 0 : kSumsOf32;
  unroll<vectors>([&](auto v) __attribute__((always_inline)) {
    const std::int64_t lanes = first_row + v * kLanes;
    const Floats scale = Source::scale(weights, lanes);
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      const std::int64_t row = first + t;
      const Floats input_scale = splat(in.scales[row]);
      Floats part = to_floats(total[t][v]) * (scale * input_scale);
      if constexpr (kPairs > 0) {
        Ints min_total = splat_int(0);
        for (int pair = 0; pair < kPairs; ++pair)
          min_total = dot2(min_total, Source::min_pair(weights, pair, lanes),
                           in.sums + row * kSums256 + kSums + pair * 2);
        part = negative_fma(Source::min_scale(weights, lanes) * input_scale, to_floats(min_total), part);
      }
      parts.part[t][v] = part;
    });
  });
}

template <class Source, int tokens, int vectors>
struct UnitProduct<Source, tokens, vectors, UnitKind::kInteger256> {
  /// Groups whose dot product with 127s fits 16 bits: 16 columns of 4-bit codes, else 8.
  static constexpr int kGroups = Source::kDotBits == 4 ? 4 : 2;
  static constexpr int kSubScalesPerStrip = Source::kSubScaleCount / 8;

  static EIDER_ALWAYS_INLINE void multiply(const std::byte* weights, std::int64_t first_row,
                                           std::int64_t unit, std::int64_t, const ProductInput& in,
                                           std::int64_t first_token, Parts<tokens, vectors>& parts) {
    const std::int64_t first = unit * in.quantized.rows + first_token;
    Ints total[tokens][vectors];
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { total[t][v] = splat_int(0); });
    });
    for (std::int64_t strip = 0; strip < 8; ++strip)
      add_strip(weights, first_row, strip, in.quantized, first, total);
    prefetch<Source::kInOrder, Source::kBytes - 8 * Source::kStripBytes>(weights + 8 * Source::kStripBytes);
    finish_256<Source>(weights, first_row, in.quantized, first, total, parts);
  }

 private:
  /// total += sub-scale * (codes . x) for one strip.
  static EIDER_ALWAYS_INLINE void add_strip(const std::byte* weights, std::int64_t first_row,
                                            std::int64_t strip, const QuantizedRows& in, std::int64_t first,
                                            Ints (&total)[tokens][vectors]) {
    const std::byte* planes = weights + strip * Source::kStripBytes;
    prefetch<Source::kInOrder, Source::kStripBytes>(planes);
    unroll<8 / kGroups>([&](auto part) __attribute__((always_inline)) {
      constexpr int kBegin = decltype(part)::value * kGroups;
      Codes codes[vectors][kGroups];
      Ints scale[vectors];
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        const std::int64_t row = first_row + v * kLanes;
        scale[v] =
            Source::sub_scale(weights, strip * kSubScalesPerStrip + kBegin * kSubScalesPerStrip / 8, row);
        unroll<kGroups>([&](auto i) __attribute__((always_inline)) {
          codes[v][i] = Source::template codes<kBegin + decltype(i)::value>(planes, row);
        });
      });
      unroll<tokens>([&](auto t) __attribute__((always_inline)) {
        const std::int64_t row = first + t;
        const std::int8_t* x = in.codes + row * 256 + strip * kStripColumns + kBegin * 4;
        Ints begin = splat_int(0);
        if constexpr (Source::kOffset != 0) {
          static_assert(Source::kOffset == kQuantizedOffset256 && kGroups == 2);
          begin = splat_int(in.corrections[row * kCorrections256 + strip * 4 + part]);
        }
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          total[t][v] = scaled_dot(total[t][v], codes[v], x, begin, scale[v]);
        });
      });
    });
  }
};

/// 32 columns, whose halves have scales of their own.
template <class Source, int tokens, int vectors>
struct UnitProduct<Source, tokens, vectors, UnitKind::kHalves32> {
  static EIDER_ALWAYS_INLINE void multiply(const std::byte* weights, std::int64_t first_row,
                                           std::int64_t unit, std::int64_t, const ProductInput& in,
                                           std::int64_t first_token, Parts<tokens, vectors>& parts) {
    const std::int64_t first = unit * in.quantized.rows + first_token;
    const std::int8_t* x = in.quantized.codes + first * 32;
    unroll<2>([&](auto half) __attribute__((always_inline)) {
      Ints sum[tokens][vectors];
      begin_sums<Source>(
          sum, [&](auto t) __attribute__((always_inline)) {
            const std::int32_t* corrections = in.quantized.corrections + 2 * (first + t);
            return half == 0 ? corrections[0] - corrections[1] : corrections[1];
          });
      add_groups<Source, half * 4, 4, 32>(weights, first_row, x + half * 16, sum);
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        const std::int64_t row = first_row + v * kLanes;
        const Floats scale = half == 0 ? Source::scale(weights, row) : Source::min_scale(weights, row);
        unroll<tokens>([&](auto t) __attribute__((always_inline)) {
          const Floats part_scale = scale * splat(in.quantized.scales[first + t]);
          Floats& part = parts.part[t][v];
          part = half == 0 ? to_floats(sum[t][v]) * part_scale : fma(to_floats(sum[t][v]), part_scale, part);
        });
      });
    });
  }
};

/// 256 columns of an opened unit: each sub-block is summed in 32 bits and then scaled.
template <class Source, int tokens, int vectors>
struct UnitProduct<Source, tokens, vectors, UnitKind::kSummed256> {
  static constexpr int kSubBlocks = Source::Layout::kSubScaleCount;
  static constexpr int kGroups = 64 / kSubBlocks;
  static constexpr std::int64_t kCorrections = kSubBlocks == 16 ? kCorrectionsOf16 : kCorrectionsOf32;

  static EIDER_ALWAYS_INLINE void multiply(const std::byte* weights, std::int64_t first_row,
                                           std::int64_t unit, std::int64_t, const ProductInput& in,
                                           std::int64_t first_token, Parts<tokens, vectors>& parts) {
    const std::int64_t first = unit * in.quantized.rows + first_token;
    Ints total[tokens][vectors];
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { total[t][v] = splat_int(0); });
    });
    for (std::int64_t j = 0; j < kSubBlocks; ++j) {
      Ints sum[tokens][vectors];
      begin_sums<Source>(
          sum, [&](auto t) __attribute__((always_inline)) {
            return in.quantized.corrections[(first + t) * kCorrections256 + kCorrections + j];
          });
      add_groups<Source, 0, kGroups, 256>(weights + j * kGroups * kPlane, first_row,
                                          in.quantized.codes + first * 256 + j * kGroups * 4, sum);
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        const Ints scale = Source::sub_scale(weights, j, first_row + v * kLanes);
        unroll<tokens>([&](auto t) __attribute__((always_inline)) {
          if constexpr (Source::Layout::kNarrow)
            total[t][v] = add_word_product(total[t][v], sum[t][v], scale);
          else
            total[t][v] = total[t][v] + sum[t][v] * scale;
        });
      });
    }
    finish_256<Source>(weights, first_row, in.quantized, first, total, parts);
  }
};
