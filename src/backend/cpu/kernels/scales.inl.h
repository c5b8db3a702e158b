// The scales that lie before a tile's units (packed.h, FP8): what the parts of a unit and the sums of rows
// are multiplied with.

/// Where the units of a packed tile of `matrix` begin.
template <ProductRule rule>
EIDER_ALWAYS_INLINE const std::byte* units_of_tile(const std::byte* packed, const Matrix& matrix) {
  if constexpr (rule == ProductRule::kScaledFloat)
    return packed + Fp8Layout(matrix.columns, matrix.scales).units;
  else
    return packed;
}

/// Of a format that has none.
template <class Source, ProductRule rule = Source::kProduct>
struct TileScales {
  EIDER_ALWAYS_INLINE TileScales(const std::byte*, const Matrix&) {}
  template <class Parts>
  EIDER_ALWAYS_INLINE void scale_unit(std::int64_t, std::int64_t, Parts&) const {}
  template <class Parts>
  EIDER_ALWAYS_INLINE void scale_rows(std::int64_t, Parts&) const {}
};

template <class Source>
class TileScales<Source, ProductRule::kScaledFloat> {
 public:
  /// `packed`: a tile of `matrix`, or of one with the same blocks of scales.
  EIDER_ALWAYS_INLINE TileScales(const std::byte* packed, const Matrix& matrix)
      : TileScales(packed, Fp8Layout(matrix.columns, matrix.scales)) {}

  /// The parts of unit `unit` for the tile's rows from `first_row` on.
  template <int tokens, int vectors>
  EIDER_ALWAYS_INLINE void scale_unit(std::int64_t unit, std::int64_t first_row,
                                      Parts<tokens, vectors>& parts) const {
    if (each_row_) return scale(units_ + unit * kRowTile + first_row, parts);
    const Floats scale = splat(units_[unit]);
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v)
                          __attribute__((always_inline)) { parts.part[t][v] = parts.part[t][v] * scale; });
    });
  }
  /// The sums of the tile's rows from `first_row` on.
  template <int tokens, int vectors>
  EIDER_ALWAYS_INLINE void scale_rows(std::int64_t first_row, Parts<tokens, vectors>& sums) const {
    scale(rows_ + first_row, sums);
  }

 private:
  EIDER_ALWAYS_INLINE TileScales(const std::byte* packed, const Fp8Layout& layout)
      : rows_(reinterpret_cast<const float*>(packed)),
        units_(reinterpret_cast<const float*>(packed + layout.unit_scales)),
        each_row_(layout.scales_per_unit > 1) {}

  template <int tokens, int vectors>
  static EIDER_ALWAYS_INLINE void scale(const float* scales, Parts<tokens, vectors>& parts) {
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      const Floats scale = load(scales + v * kLanes);
      unroll<tokens>([&](auto t)
                         __attribute__((always_inline)) { parts.part[t][v] = parts.part[t][v] * scale; });
    });
  }

  const float* rows_;
  const float* units_;
  bool each_row_;
};
