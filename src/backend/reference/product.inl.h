// Products y = x * W^T, for every storage format by its rule. A unit (32 or 256 columns) of a tile of rows is
// decoded once and multiplied with a tile of tokens; vector lanes run along rows.

/// Rows and tokens of a tile side by side: [kTokenTile][kRowTile].
using TileTreeSum = LaneTreeSum<kTokenTile * kRowTile>;

/// Exact: products of codes stay far from the bounds of int32.
template <int kCount, class B>
EIDER_ALWAYS_INLINE std::int32_t dot(const std::int16_t* a, const B* b) {
  std::int32_t sum = 0;
  for (int i = 0; i < kCount; ++i) sum += a[i] * b[i];
  return sum;
}

/// Past the last row the last one, so that a tile is always full.
EIDER_ALWAYS_INLINE std::int64_t real_row(const Matrix& matrix, std::int64_t row) {
  return row < matrix.rows ? row : matrix.rows - 1;
}

/// The blocks of a row.
template <class F>
EIDER_ALWAYS_INLINE const typename F::Block* row_blocks(const Matrix& matrix, std::int64_t row) {
  return reinterpret_cast<const typename F::Block*>(matrix.data + real_row(matrix, row) * matrix.row_bytes);
}

/// One unit of a tile of rows, decoded: load() it, then multiply() gives its part of the product with `count`
/// input rows from `first` on, count <= kTokenTile: parts [count][kRowTile].
template <class F, ProductRule kRule = F::kProduct>
struct UnitTile;

template <class F>
struct UnitTile<F, ProductRule::kFloat> {
  static_assert(F::kBlockElems == 1);
  static constexpr std::int64_t kColumns = 32;

  float weight[kColumns][kRowTile];
  std::int64_t columns;      // of this unit; the last one may be short
  std::int64_t input_width;  // of the whole contraction

  EIDER_ALWAYS_INLINE void load(const Matrix& matrix, std::int64_t first_row, std::int64_t unit) {
    input_width = matrix.columns;
    const std::int64_t left = matrix.columns - unit * kColumns;
    columns = left < kColumns ? left : kColumns;
    for (std::int64_t r = 0; r < kRowTile; ++r) {
      const auto* blocks = row_blocks<F>(matrix, first_row + r) + unit * kColumns;
      for (std::int64_t i = 0; i < columns; ++i) F::decode(blocks[i], &weight[i][r]);
    }
  }

  EIDER_ALWAYS_INLINE void multiply(const ProductInput& in, std::int64_t first, std::int64_t count,
                                    std::int64_t unit, float* parts) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const float* x = in.values + (first + i) * input_width + unit * kColumns;
      float sum[kRowTile] = {};
      for (std::int64_t k = 0; k < columns; ++k)
        for (int r = 0; r < kRowTile; ++r) sum[r] = std::fma(weight[k][r], x[k], sum[r]);
      for (int r = 0; r < kRowTile; ++r) parts[i * kRowTile + r] = sum[r];
    }
  }
};

template <class F>
struct UnitTile<F, ProductRule::kScaledFloat> : UnitTile<F, ProductRule::kFloat> {
  using Floats = UnitTile<F, ProductRule::kFloat>;

  float scale[kRowTile];  // of the unit's sums

  EIDER_ALWAYS_INLINE void load(const Matrix& matrix, std::int64_t first_row, std::int64_t unit) {
    Floats::load(matrix, first_row, unit);
    for (std::int64_t r = 0; r < kRowTile; ++r)
      scale[r] = matrix.scales.of_unit(real_row(matrix, first_row + r), unit * Floats::kColumns);
  }

  EIDER_ALWAYS_INLINE void multiply(const ProductInput& in, std::int64_t first, std::int64_t count,
                                    std::int64_t unit, float* parts) const {
    Floats::multiply(in, first, count, unit, parts);
    for (std::int64_t i = 0; i < count; ++i)
      for (int r = 0; r < kRowTile; ++r) parts[i * kRowTile + r] *= scale[r];
  }
};

/// sums [count][kRowTile] times their rows' scales, where the format has such.
template <class F>
EIDER_ALWAYS_INLINE void scale_rows(const Matrix& matrix, std::int64_t first_row, std::int64_t count,
                                    float* sums) {
  if constexpr (F::kProduct == ProductRule::kScaledFloat)
    for (std::int64_t r = 0; r < kRowTile; ++r) {
      const float scale = matrix.scales.of_row(real_row(matrix, first_row + r));
      for (std::int64_t i = 0; i < count; ++i) sums[i * kRowTile + r] *= scale;
    }
}

/// Codes as products use them: weight = scale * code + min * min_code, sub-block scales multiplied in.
EIDER_ALWAYS_INLINE void expand(const Unit32& unit, std::int16_t* code, std::int16_t* min_code, float& min) {
  for (int i = 0; i < 32; ++i) code[i] = unit.code[i];
  min_code[0] = 1;
  min = unit.min;
}
EIDER_ALWAYS_INLINE void expand(const Unit256& unit, std::int16_t* code, std::int16_t* min_code, float& min) {
  for (int j = 0; j < 16; ++j)
    for (int i = 16 * j; i < 16 * j + 16; ++i)
      code[i] = static_cast<std::int16_t>(unit.sub_scale[j] * unit.code[i]);  // at most 128 * 32
  for (int j = 0; j < 16; ++j) min_code[j] = unit.sub_min[j];
  min = -unit.min_scale;
}

template <class F, class Unit, int kUnit>
struct IntegerUnitTile {
  static constexpr std::int64_t kColumns = kUnit;
  static constexpr int kSums = kUnit == 256 ? 16 : 1;

  std::int16_t code[kRowTile][kUnit];
  std::int16_t min_code[kRowTile][kSums];
  float scale[kRowTile];
  float min[kRowTile];

  // Here and in multiply(), all of one step before all of the next: what was just stored in small pieces is
  // slow to load in large ones.
  EIDER_ALWAYS_INLINE void load(const Matrix& matrix, std::int64_t first_row, std::int64_t unit) {
    Unit units[kRowTile];
    for (std::int64_t r = 0; r < kRowTile; ++r)
      unpack_unit<F>(row_blocks<F>(matrix, first_row + r), unit, units[r]);
    for (std::int64_t r = 0; r < kRowTile; ++r) {
      scale[r] = units[r].scale;
      expand(units[r], code[r], min_code[r], min[r]);
    }
  }

  EIDER_ALWAYS_INLINE void multiply(const ProductInput& in, std::int64_t first, std::int64_t count,
                                    std::int64_t unit, float* parts) const {
    const QuantizedRows& x = in.quantized;
    const std::int64_t place = unit * x.rows + first;  // of the first row
    std::int32_t dots[kTokenTile][kRowTile];
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int8_t* codes = x.codes + (place + i) * kUnit;
      for (int r = 0; r < kRowTile; ++r) dots[i][r] = dot<kUnit>(code[r], codes);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const float input_scale = x.scales[place + i];
      for (int r = 0; r < kRowTile; ++r)
        parts[i * kRowTile + r] = static_cast<float>(dots[i][r]) * (scale[r] * input_scale);
    }
    if constexpr (F::kHasMin) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::int16_t sums[kSums];
        if constexpr (kUnit == 32)
          sums[0] = static_cast<std::int16_t>(x.corrections[2 * (place + i)] / -kQuantizedOffset32);
        else
          for (int j = 0; j < kSums; ++j) sums[j] = x.sums[(place + i) * kSums256 + j];
        for (int r = 0; r < kRowTile; ++r) dots[i][r] = dot<kSums>(min_code[r], sums);
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const float input_scale = x.scales[place + i];
        for (int r = 0; r < kRowTile; ++r) {
          float& part = parts[i * kRowTile + r];
          part = std::fma(min[r] * input_scale, static_cast<float>(dots[i][r]), part);
        }
      }
    }
  }
};

template <class F>
struct UnitTile<F, ProductRule::kInteger32> : IntegerUnitTile<F, Unit32, 32> {};
template <class F>
struct UnitTile<F, ProductRule::kInteger256> : IntegerUnitTile<F, Unit256, 256> {};

template <class F>
struct UnitTile<F, ProductRule::kInteger32Halves> {
  static constexpr std::int64_t kColumns = 32;

  std::int16_t code[kRowTile][32];
  float scale[2][kRowTile];

  EIDER_ALWAYS_INLINE void load(const Matrix& matrix, std::int64_t first_row, std::int64_t unit) {
    for (std::int64_t r = 0; r < kRowTile; ++r) {
      Unit32Halves halves;
      unpack_unit<F>(row_blocks<F>(matrix, first_row + r), unit, halves);
      for (int i = 0; i < 32; ++i) code[r][i] = halves.code[i];
      for (int half = 0; half < 2; ++half) scale[half][r] = halves.scale[half];
    }
  }

  EIDER_ALWAYS_INLINE void multiply(const ProductInput& in, std::int64_t first, std::int64_t count,
                                    std::int64_t unit, float* parts) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = unit * in.quantized.rows + first + i;
      const std::int8_t* codes = in.quantized.codes + place * 32;
      const float input_scale = in.quantized.scales[place];
      for (int r = 0; r < kRowTile; ++r) {
        const auto first_dot = static_cast<float>(dot<16>(code[r], codes));
        const auto second_dot = static_cast<float>(dot<16>(code[r] + 16, codes + 16));
        parts[i * kRowTile + r] =
            std::fma(second_dot, scale[1][r] * input_scale, first_dot * (scale[0][r] * input_scale));
      }
    }
  }
};

/// Units of a contraction of `columns`.
template <class Tile>
EIDER_ALWAYS_INLINE std::int64_t units_of(std::int64_t columns) {
  return (columns + Tile::kColumns - 1) / Tile::kColumns;
}

template <class F>
inline void product(const ProductArgs& args, Items tiles) {
  UnitTile<F> weights;
  const std::int64_t units = units_of<UnitTile<F>>(args.weight.columns);
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t first_row = tile * kRowTile;
    const std::int64_t rows =
        args.weight.rows - first_row < kRowTile ? args.weight.rows - first_row : kRowTile;
    for (std::int64_t first = 0; first < args.count; first += kTokenTile) {
      const std::int64_t count = args.count - first < kTokenTile ? args.count - first : kTokenTile;
      TileTreeSum sums(count * kRowTile);
      for (std::int64_t unit = 0; unit < units; ++unit) {
        weights.load(args.weight, first_row, unit);
        weights.multiply(args.in, args.first + first, count, unit, sums.next());
        sums.add();
      }
      float* y = sums.total();
      scale_rows<F>(args.weight, first_row, count, y);
      for (std::int64_t i = 0; i < count; ++i) {
        float* out = args.out + (first + i) * args.weight.rows + first_row;
        for (std::int64_t r = 0; r < rows; ++r)
          out[r] =
              args.bias == nullptr ? y[i * kRowTile + r] : y[i * kRowTile + r] + args.bias[first_row + r];
      }
    }
  }
}
