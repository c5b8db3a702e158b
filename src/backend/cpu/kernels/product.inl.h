// Products y = x * W^T over packed weights.

/// out[row + lane] = y + bias, for the rows that the weight has.
EIDER_ALWAYS_INLINE void store_rows(const ProductArgs& args, Floats y, std::int64_t row, float* out) {
  if (row + kLanes <= args.weight.rows) {
    store(out + row, args.bias == nullptr ? y : y + load(args.bias + row));
    return;
  }
  float lanes[kLanes];
  store(lanes, y);
  for (int lane = 0; row + lane < args.weight.rows; ++lane)
    out[row + lane] = args.bias == nullptr ? lanes[lane] : lanes[lane] + args.bias[row + lane];
}

/// The finished parts of the rows from `row` on and the tokens from `first_token` on.
template <int tokens, int vectors>
EIDER_ALWAYS_INLINE void store_parts(const ProductArgs& args, const Parts<tokens, vectors>& parts,
                                     std::int64_t row, std::int64_t first_token) {
  unroll<tokens>([&](auto t) __attribute__((always_inline)) {
    float* out = args.out + (first_token + t) * args.weight.rows;
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      store_rows(args, parts.part[t][v], row + v * kLanes, out);
    });
  });
}

/// Rows [first_row, first_row + vectors * kLanes) of tile `tile` of a format times input row `token`, from
/// the packed tile.
template <class F, int vectors>
EIDER_ALWAYS_INLINE void multiply_rows(const ProductArgs& args, std::int64_t tile, std::int64_t first_row,
                                       std::int64_t token) {
  using Source = Packed<F>;
  const std::byte* packed = args.weight.data + tile * args.weight.row_bytes;  // a packed "row" is a tile
  const std::byte* weights = units_of_tile<Source::kProduct>(packed, args.weight);
  PartsTree<1, vectors> tree;
  Parts<1, vectors> parts;
  const TileScales<Source> scales(packed, args.weight);
  const std::int64_t columns = args.weight.columns;
  const std::int64_t units = units_of<Source::kProduct>(columns);
  std::int64_t unit = 0;
  if constexpr (Source::kKind == UnitKind::kFours) {
    constexpr int kUnits = kUnitsAtOnce<vectors>;
    for (; (unit + kUnits) * 32 <= columns; unit += kUnits) {
      Parts<1, vectors> several[kUnits];
      UnitProduct<Source, 1, vectors>::multiply_whole(weights + unit * Source::kBytes, first_row, unit,
                                                      columns, args.in, args.first + token, several);
      unroll<kUnits>([&](auto i) __attribute__((always_inline)) {
        scales.scale_unit(unit + i, first_row, several[i]);
        tree.add(several[i]);
      });
    }
  }
  for (; unit < units; ++unit) {
    UnitProduct<Source, 1, vectors>::multiply(weights + unit * Source::kBytes, first_row, unit, columns,
                                              args.in, args.first + token, parts);
    scales.scale_unit(unit, first_row, parts);
    tree.add(parts);
  }
  tree.total(parts);
  scales.scale_rows(first_row, parts);
  store_parts(args, parts, tile * kRowTile + first_row, token);
}

/// All rows of tile `tile` times `tokens` input rows, `first_token` of the product's and on, from opened
/// units.
template <class Source, int tokens>
EIDER_ALWAYS_INLINE void multiply_opened(const ProductArgs& args, const TileUnits& from, std::int64_t tile,
                                         std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<Source::kProduct, tokens>;
  constexpr std::int64_t kPassRows = kRowVectors * kLanes, kPasses = kRowTile / kPassRows;
  PartsTree<tokens, kRowVectors> trees[kPasses];
  Parts<tokens, kRowVectors> parts;
  Stage<Source> stage;
  const TileScales<Source> scales(args.weight.data + tile * args.weight.row_bytes, args.weight);
  const std::int64_t columns = args.weight.columns;
  const std::int64_t units = units_of<Source::kProduct>(columns);
  for (std::int64_t first = 0; first < units; first += stage.kUnits) {
    const std::int64_t count = units - first < stage.kUnits ? units - first : stage.kUnits;
    const std::byte* opened = stage.open(from, first, columns);
    for (std::int64_t pass = 0; pass < kPasses; ++pass) {
      const std::int64_t row = pass * kPassRows;
      for (std::int64_t i = 0; i < count; ++i) {
        UnitProduct<Source, tokens, kRowVectors>::multiply(opened + i * Source::kBytes, row, first + i,
                                                           columns, args.in, args.first + first_token, parts);
        scales.scale_unit(first + i, row, parts);
        trees[pass].add(parts);
      }
    }
  }
  for (std::int64_t pass = 0; pass < kPasses; ++pass) {
    trees[pass].total(parts);
    scales.scale_rows(pass * kPassRows, parts);
    store_parts(args, parts, tile * kRowTile + pass * kPassRows, first_token);
  }
}

/// Input rows from `token` on: `tokens` at a time as long as there are so many, then fewer, but not one
/// alone. Returns the first that is left.
template <class Source, int tokens>
EIDER_ALWAYS_INLINE std::int64_t multiply_tokens(const ProductArgs& args, const TileUnits& from,
                                                 std::int64_t tile, std::int64_t token) {
  for (; token + tokens <= args.count; token += tokens)
    multiply_opened<Source, tokens>(args, from, tile, token);
  if constexpr (tokens > 2) return multiply_tokens<Source, tokens / 2>(args, from, tile, token);
  return token;
}

/// The input's rows by twos at least; returns the first that is left.
template <class Source>
__attribute__((noinline)) std::int64_t multiply_several(const ProductArgs& args, TileUnits from,
                                                        std::int64_t tile) {
  const std::int64_t even = args.count / 2 * 2;
  const bool one_pass = even <= kOpenedTokens && (even & (even - 1)) == 0;
  if (!one_pass) from = open_tile<Source>(from, args.weight.columns, args.opened);
  return multiply_tokens<Source, kOpenedTokens>(args, from, tile, 0);
}

/// One input row, of a format whose units are always opened.
template <class Source>
__attribute__((noinline)) void multiply_one(const ProductArgs& args, const TileUnits& from, std::int64_t tile,
                                            std::int64_t token) {
  multiply_opened<Source, 1>(args, from, tile, token);
}

/// Whether it takes so little to take packed units apart that fewer than 2 * kOpenedTokens tokens do so on
/// the way.
template <class F>
inline constexpr bool kFewFromPacked = kOpenedTokens > 0 && F::kProduct == ProductRule::kInteger32 &&
                                       !PackedFormat<F>::kTabled && PackedFormat<F>::kBits != 5;

/// As multiply_several(), of so few tokens.
template <class F>
__attribute__((noinline)) std::int64_t multiply_few(const ProductArgs& args, const TileUnits& units,
                                                    std::int64_t tile) {
  return multiply_tokens<Packed<F>, kOpenedTokens>(args, {units.units, nullptr, units.unit_bytes}, tile, 0);
}

template <class F>
inline void product(const ProductArgs& args, Items tiles) {
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const TileUnits units = packed_units<F>(args.weight.data + tile * args.weight.row_bytes, args.weight);
    std::int64_t token = 0;
    if constexpr (kFewFromPacked<F>)
      if (args.count < 2 * kOpenedTokens) token = multiply_few<F>(args, units, tile);
    if constexpr (kOpenedTokens > 0)
      if (args.count - token > 1) token = multiply_several<Opened<F>>(args, units, tile);
    for (; token < args.count; ++token) {
      if constexpr (PackedFormat<F>::kTabled) {
        multiply_one<Opened<F>>(args, units, tile, token);
      } else {
        constexpr int kRowVectors = kVectors<F::kProduct, 1>;
        for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
          multiply_rows<F, kRowVectors>(args, tile, row, token);
      }
    }
  }
}
