// Products y = x * W^T, for every storage format by its rule. A unit (32 or 256 columns) of a tile of rows is
// decoded once and multiplied with a tile of tokens; vector lanes run along rows.

/// One value for each row of a tile.
struct RowLanes {
  float lane[kRowTile];
};

EIDER_ALWAYS_INLINE RowLanes operator+(const RowLanes& a, const RowLanes& b) {
  RowLanes sum;
  for (int r = 0; r < kRowTile; ++r) sum.lane[r] = a.lane[r] + b.lane[r];
  return sum;
}

/// Quantises activations in groups of kUnit columns.
template <int kUnit>
inline void quantize(const QuantizeArgs& args, Items items) {
  constexpr int kSums = kUnit == 256 ? 16 : 1;
  for (std::int64_t item = items.begin; item < items.end; ++item) {  // unit * rows + row
    const std::int64_t unit = item / args.out.rows;
    const std::int64_t row = item % args.out.rows;
    const float* x = args.in + row * args.columns + unit * kUnit;
    std::int16_t* codes = args.out.codes + item * kUnit;

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
        codes[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(std::rint(x[i] * inverse)));
    }
    for (int j = 0; j < kSums; ++j) {
      int sum = 0;
      for (int i = 0; i < kUnit / kSums; ++i) sum += codes[j * (kUnit / kSums) + i];
      args.out.sums[item * kSums + j] = static_cast<std::int16_t>(sum);
    }
  }
}

/// Exact: products of codes stay far from the bounds of int32.
template <int kCount>
EIDER_ALWAYS_INLINE std::int32_t dot(const std::int16_t* a, const std::int16_t* b) {
  std::int32_t sum = 0;
  for (int i = 0; i < kCount; ++i) sum += a[i] * b[i];
  return sum;
}

/// One unit of a tile of rows, decoded: load() it, then partial() is its part of the product with one input
/// row.
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
      const std::int64_t row = first_row + r < matrix.rows ? first_row + r : matrix.rows - 1;
      const auto* blocks =
          reinterpret_cast<const typename F::Block*>(matrix.data + row * matrix.row_bytes) + unit * kColumns;
      for (std::int64_t i = 0; i < columns; ++i) F::decode(blocks[i], &weight[i][r]);
    }
  }

  EIDER_ALWAYS_INLINE RowLanes partial(const ProductInput& in, std::int64_t row, std::int64_t unit) const {
    const float* x = in.values + row * input_width + unit * kColumns;
    RowLanes sum = {};
    for (std::int64_t i = 0; i < columns; ++i)
      for (int r = 0; r < kRowTile; ++r) sum.lane[r] = std::fma(weight[i][r], x[i], sum.lane[r]);
    return sum;
  }
};

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

  EIDER_ALWAYS_INLINE void load(const Matrix& matrix, std::int64_t first_row, std::int64_t unit) {
    for (std::int64_t r = 0; r < kRowTile; ++r) {
      const std::int64_t row = first_row + r < matrix.rows ? first_row + r : matrix.rows - 1;
      const auto* blocks = reinterpret_cast<const typename F::Block*>(matrix.data + row * matrix.row_bytes);
      Unit unpacked;
      F::unpack(blocks[unit], unpacked);
      scale[r] = unpacked.scale;
      expand(unpacked, code[r], min_code[r], min[r]);
    }
  }

  EIDER_ALWAYS_INLINE RowLanes partial(const ProductInput& in, std::int64_t row, std::int64_t unit) const {
    const std::int64_t at = unit * in.quantized.rows + row;
    const std::int16_t* codes = in.quantized.codes + at * kUnit;
    const std::int16_t* sums = in.quantized.sums + at * kSums;
    const float input_scale = in.quantized.scales[at];
    std::int32_t dots[kRowTile];
    for (int r = 0; r < kRowTile; ++r) dots[r] = dot<kUnit>(code[r], codes);
    RowLanes u;
    for (int r = 0; r < kRowTile; ++r) u.lane[r] = static_cast<float>(dots[r]) * (scale[r] * input_scale);
    if constexpr (F::kHasMin) {
      for (int r = 0; r < kRowTile; ++r) dots[r] = dot<kSums>(min_code[r], sums);
      for (int r = 0; r < kRowTile; ++r)
        u.lane[r] = std::fma(min[r] * input_scale, static_cast<float>(dots[r]), u.lane[r]);
    }
    return u;
  }
};

template <class F>
struct UnitTile<F, ProductRule::kInteger32> : IntegerUnitTile<F, Unit32, 32> {};
template <class F>
struct UnitTile<F, ProductRule::kInteger256> : IntegerUnitTile<F, Unit256, 256> {};

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
      TreeSum<RowLanes> sums[kTokenTile];
      for (std::int64_t unit = 0; unit < units; ++unit) {
        weights.load(args.weight, first_row, unit);
        for (std::int64_t i = 0; i < count; ++i)
          sums[i].add(weights.partial(args.in, args.input_rows[first + i], unit));
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const RowLanes y = sums[i].total();
        float* out = args.out + args.output_rows[first + i] * args.weight.rows + first_row;
        for (std::int64_t r = 0; r < rows; ++r)
          out[r] = args.bias == nullptr ? y.lane[r] : y.lane[r] + args.bias[first_row + r];
      }
    }
  }
}
