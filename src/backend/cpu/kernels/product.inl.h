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

/// Rows [first_row, first_row + vectors * kLanes) of tile `tile`, which lies at `weights`, times `tokens`
/// input rows, `first_token` of the product's and on.
template <class Source, int tokens, int vectors>
EIDER_ALWAYS_INLINE void multiply_rows(const ProductArgs& args, const std::byte* weights, std::int64_t tile,
                                       std::int64_t first_row, std::int64_t first_token) {
  PartsTree<tokens, vectors> tree;
  Parts<tokens, vectors> parts;
  const TileScales<Source> scales(args.weight.data + tile * args.weight.row_bytes, args.weight);
  const std::int64_t columns = args.weight.columns;
  const std::int64_t units = units_of<Source::kProduct>(columns);
  std::int64_t unit = 0;
  if constexpr (Source::kProduct == ProductRule::kScaledFloat && tokens * vectors < 8) {
    // A unit is too few bytes for the latency of its chains.
    constexpr int kUnits = 8 / (tokens * vectors);
    for (; (unit + kUnits) * 32 <= columns; unit += kUnits) {
      Parts<tokens, vectors> several[kUnits];
      UnitProduct<Source, tokens, vectors>::multiply_whole(weights + unit * Source::kBytes, first_row, unit,
                                                           columns, args.in, args.first + first_token,
                                                           several);
      unroll<kUnits>([&](auto i) __attribute__((always_inline)) {
        scales.scale_unit(unit + i, first_row, several[i]);
        tree.add(several[i]);
      });
    }
  }
  for (; unit < units; ++unit) {
    UnitProduct<Source, tokens, vectors>::multiply(weights + unit * Source::kBytes, first_row, unit, columns,
                                                   args.in, args.first + first_token, parts);
    scales.scale_unit(unit, first_row, parts);
    tree.add(parts);
  }
  tree.total(parts);
  scales.scale_rows(first_row, parts);
  store_parts(args, parts, tile * kRowTile + first_row, first_token);
}

template <class Source, int tokens>
EIDER_ALWAYS_INLINE void multiply_tile(const ProductArgs& args, const std::byte* weights, std::int64_t tile,
                                       std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<Source::kProduct, tokens>;
  for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
    multiply_rows<Source, tokens, kRowVectors>(args, weights, tile, row, first_token);
}

/// Input rows from `token` on: tiles of `tokens` as long as there are so many, then smaller ones.
template <class F, int tokens>
EIDER_ALWAYS_INLINE void multiply_tokens(const ProductArgs& args, const std::byte* packed, std::int64_t tile,
                                         std::int64_t token) {
  for (; token + tokens <= args.count; token += tokens)
    multiply_tile<Packed<F>, tokens>(args, packed, tile, token);
  if constexpr (tokens > 1) multiply_tokens<F, tokens / 2>(args, packed, tile, token);
}

template <class F>
inline void product(const ProductArgs& args, Items tiles) {
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::byte* packed = args.weight.data + tile * args.weight.row_bytes;  // a packed "row" is a tile
    std::int64_t token = 0;
    if constexpr (kOpenedTokens > 0) {
      if (args.count >= kFewestForOpened) {
        const std::byte* opened = Opened<F>::open(packed, args.weight.columns, args.opened);
        for (; token + kOpenedTokens <= args.count; token += kOpenedTokens)
          multiply_tile<Opened<F>, kOpenedTokens>(args, opened, tile, token);
      }
    }
    multiply_tokens<F, kPackedTokens>(args, packed, tile, token);
  }
}

/// All rows of tile `tile` times `tokens` input rows, `first_token` of the product's and on.
template <class Source, int tokens>
EIDER_ALWAYS_INLINE void multiply_staged(const ProductArgs& args, const TileUnits& from, std::int64_t tile,
                                         std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<Source::kProduct, tokens>;
  constexpr std::int64_t kPassRows = kRowVectors * kLanes, kPasses = kRowTile / kPassRows;
  PartsTree<tokens, kRowVectors> trees[kPasses];
  Parts<tokens, kRowVectors> parts;
  Stage<Source> stage;
  const std::int64_t columns = args.weight.columns;
  const std::int64_t units = units_of<Source::kProduct>(columns);
  for (std::int64_t first = 0; first < units; first += stage.kUnits) {
    const std::int64_t count = units - first < stage.kUnits ? units - first : stage.kUnits;
    const std::byte* opened = stage.open(from, first, count);
    for (std::int64_t pass = 0; pass < kPasses; ++pass) {
      for (std::int64_t i = 0; i < count; ++i) {
        UnitProduct<Source, tokens, kRowVectors>::multiply(opened + i * Source::kBytes, pass * kPassRows,
                                                           first + i, columns, args.in,
                                                           args.first + first_token, parts);
        trees[pass].add(parts);
      }
    }
  }
  for (std::int64_t pass = 0; pass < kPasses; ++pass) {
    trees[pass].total(parts);
    store_parts(args, parts, tile * kRowTile + pass * kPassRows, first_token);
  }
}

/// Input rows from `token` on: `tokens` at a time as long as there are so many, then fewer.
template <class Source, int tokens>
EIDER_ALWAYS_INLINE void multiply_staged_tokens(const ProductArgs& args, const TileUnits& from,
                                                std::int64_t tile, std::int64_t token) {
  for (; token + tokens <= args.count; token += tokens)
    multiply_staged<Source, tokens>(args, from, tile, token);
  if constexpr (tokens > 1) multiply_staged_tokens<Source, tokens / 2>(args, from, tile, token);
}

/// The product of every tabled format that opens to `Source`; `from.units` is not read.
template <class Source>
__attribute__((noinline)) void staged_product(const ProductArgs& args, Items tiles, TileUnits from) {
  constexpr int kTokens = kOpenedTokens > kPackedTokens ? kOpenedTokens : kPackedTokens;
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    from.units = args.weight.data + tile * args.weight.row_bytes;
    const TileUnits units =
        args.count > kTokens ? open_tile<Source>(from, args.weight.columns, args.opened) : from;
    multiply_staged_tokens<Source, kTokens>(args, units, tile, 0);
  }
}

template <class F>
inline void tabled_product(const ProductArgs& args, Items tiles) {
  staged_product<StagedFormat<F>>(args, tiles, {nullptr, opener(F::kFormat), UnitLayout<F>::kBytes});
}
