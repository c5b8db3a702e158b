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

/// Rows [first_row, first_row + vectors * kLanes) of tile `tile`, which lies at `weights`, times `tokens`
/// input rows, `first_token` of the product's and on.
template <class Source, int tokens, int vectors>
EIDER_ALWAYS_INLINE void multiply_rows(const ProductArgs& args, const std::byte* weights, std::int64_t tile,
                                       std::int64_t first_row, std::int64_t first_token) {
  PartsTree<tokens, vectors> tree;
  Parts<tokens, vectors> parts;
  const std::int64_t columns = args.weight.columns;
  const std::int64_t units = units_of<typename Source::Format>(columns);
  for (std::int64_t unit = 0; unit < units; ++unit) {
    UnitProduct<Source, tokens, vectors>::multiply(weights, first_row, unit, columns, args.in,
                                                   args.first + first_token, parts);
    tree.add(parts);
  }
  tree.total(parts);
  unroll<tokens>([&](auto t) __attribute__((always_inline)) {
    float* out = args.out + (first_token + t) * args.weight.rows;
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      store_rows(args, parts.part[t][v], tile * kRowTile + first_row + v * kLanes, out);
    });
  });
}

template <class Source, int tokens>
EIDER_ALWAYS_INLINE void multiply_tile(const ProductArgs& args, const std::byte* weights, std::int64_t tile,
                                       std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<Source::Format::kProduct, tokens>;
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
