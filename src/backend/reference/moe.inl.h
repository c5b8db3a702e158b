// Mixture of experts: the down product, whose sum runs over a token's experts.

/// Adds weight * t to p for all groups of one expert and its places of a tile of tokens.
/// p: [groups][kTokenTile][kRowTile], the tile starting at `first_token`.
template <class F>
EIDER_ALWAYS_INLINE void add_expert(const MoeDownArgs& args, const Matrix& down, std::int64_t first_row,
                                    std::int64_t first_token, Items places, float* p) {
  UnitTile<F> weights;
  const std::int64_t units = units_of<UnitTile<F>>(down.columns);
  const std::int64_t count = places.end - places.begin;
  for (std::int64_t begin = 0; begin < units; begin += args.units_per_group) {
    const std::int64_t end = units - begin < args.units_per_group ? units : begin + args.units_per_group;
    TileTreeSum subtree(count * kRowTile);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      weights.load(down, first_row, unit);
      weights.multiply(args.in, places.begin, count, unit, subtree.next());
      subtree.add();
    }
    float* t = subtree.total();
    scale_rows<F>(down, first_row, count, t);
    float* group = p + begin / args.units_per_group * kTokenTile * kRowTile;
    for (std::int64_t i = 0; i < count; ++i) {
      const float weight = args.picks.weights[places.begin + i];
      float* sum = group + (args.picks.tokens[places.begin + i] - first_token) * kRowTile;
      for (int r = 0; r < kRowTile; ++r) sum[r] = std::fma(weight, t[i * kRowTile + r], sum[r]);
    }
  }
}

template <class F>
inline void moe_down(const MoeDownArgs& args, Items tiles) {
  const std::int64_t out_width = args.down[0].rows;
  const std::int64_t units = units_of<UnitTile<F>>(args.down[0].columns);
  const std::int64_t groups = (units + args.units_per_group - 1) / args.units_per_group;
  float* p = args.scratch;  // [groups][kTokenTile][kRowTile]
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t first_row = tile * kRowTile;
    const std::int64_t rows = out_width - first_row < kRowTile ? out_width - first_row : kRowTile;
    for (std::int64_t first = 0; first < args.tokens; first += kTokenTile) {
      const std::int64_t end = args.tokens - first < kTokenTile ? args.tokens : first + kTokenTile;
      for (std::int64_t i = 0; i < groups * kTokenTile * kRowTile; ++i) p[i] = 0;
      for (std::int64_t i = 0; i < args.picks.count; ++i) {
        const std::int64_t last = args.picks.begin[i + 1];
        const std::int64_t from = first_of_token(args.picks.tokens, args.picks.begin[i], last, first);
        const std::int64_t to = first_of_token(args.picks.tokens, from, last, end);
        if (from < to) add_expert<F>(args, args.down[args.picks.chosen[i]], first_row, first, {from, to}, p);
      }
      const std::int64_t lanes = (end - first) * kRowTile;
      TileTreeSum sum(lanes);
      for (std::int64_t group = 0; group < groups; ++group) {
        float* next = sum.next();
        for (std::int64_t i = 0; i < lanes; ++i) next[i] = p[group * kTokenTile * kRowTile + i];
        sum.add();
      }
      const float* y = sum.total();
      for (std::int64_t token = first; token < end; ++token)
        for (std::int64_t r = 0; r < rows; ++r)
          args.out[token * out_width + first_row + r] = y[(token - first) * kRowTile + r];
    }
  }
}
