// The down product of a mixture of experts over packed weights. Its sum runs over a token's experts inside
// each group of units, and then over groups (docs/NUMERICS.md, Mixture of experts).

/// p[group][token][row] += weight * t for `tokens` picks of one expert, from `pick` on, and the rows from
/// `first_row` on.
template <class F, int tokens, int vectors>
EIDER_ALWAYS_INLINE void add_picks(const MoeDownArgs& args, const Matrix& down, std::int64_t tile,
                                   std::int64_t first_row, std::int64_t pick, std::int64_t first_token) {
  using Unit = UnitProduct<F, tokens, vectors>;
  const std::byte* packed = down.data + tile * down.row_bytes;
  InputTokens<tokens> rows;
  for (int i = 0; i < tokens; ++i) rows.row[i] = args.picks.picks[pick + i];
  const std::int64_t units = Unit::units(down.columns);
  Parts<tokens, vectors> t;
  for (std::int64_t unit = 0; unit < units;) {
    float* group = args.scratch + unit / args.units_per_group * kTokenTile * kRowTile;
    Unit::multiply(packed, first_row, unit++, down.columns, args.in, rows, t);
    if (args.units_per_group == 2 && unit < units) {
      Parts<tokens, vectors> second;
      Unit::multiply(packed, first_row, unit++, down.columns, args.in, rows, second);
      unroll<tokens>([&](auto i) __attribute__((always_inline)) {
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          t.part[i][v] = t.part[i][v] + second.part[i][v];
        });
      });
    }
    unroll<tokens>([&](auto i) __attribute__((always_inline)) {
      const Floats weight = splat(args.weights[args.picks.picks[pick + i]]);
      float* p = group + (args.picks.tokens[pick + i] - first_token) * kRowTile + first_row;
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        store(p + v * kLanes, fma(weight, t.part[i][v], load(p + v * kLanes)));
      });
    });
  }
}

template <class F, int tokens>
EIDER_ALWAYS_INLINE void add_picks_of_tile(const MoeDownArgs& args, const Matrix& down, std::int64_t tile,
                                           std::int64_t pick, std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<F::kProduct, tokens>;
  for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
    add_picks<F, tokens, kRowVectors>(args, down, tile, row, pick, first_token);
}

/// out[token] = tree over the groups of p, for the tokens of a tile.
EIDER_ALWAYS_INLINE void sum_groups(const MoeDownArgs& args, std::int64_t tile, std::int64_t groups,
                                    std::int64_t first_token, std::int64_t count) {
  const std::int64_t width = args.down[0].rows;
  for (std::int64_t token = 0; token < count; ++token) {
    for (std::int64_t row = 0; row < kRowTile; row += kLanes) {
      PartsTree<1, 1> tree;
      Parts<1, 1> y;
      for (std::int64_t group = 0; group < groups; ++group) {
        y.part[0][0] = load(args.scratch + (group * kTokenTile + token) * kRowTile + row);
        tree.add(y);
      }
      tree.total(y);
      float lanes[kLanes];
      store(lanes, y.part[0][0]);
      const std::int64_t first = tile * kRowTile + row;
      for (int lane = 0; lane < kLanes && first + lane < width; ++lane)
        args.out[(first_token + token) * width + first + lane] = lanes[lane];
    }
  }
}

template <class F>
inline void moe_down(const MoeDownArgs& args, Items tiles) {
  const std::int64_t units = UnitProduct<F, 1, 1>::units(args.down[0].columns);
  const std::int64_t groups = (units + args.units_per_group - 1) / args.units_per_group;
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    for (std::int64_t first = 0; first < args.tokens; first += kTokenTile) {
      const std::int64_t count = args.tokens - first < kTokenTile ? args.tokens - first : kTokenTile;
      for (std::int64_t group = 0; group < groups; ++group)
        for (std::int64_t i = 0; i < count * kRowTile; ++i)
          args.scratch[group * kTokenTile * kRowTile + i] = 0;
      for (std::int64_t expert = 0; expert < args.picks.experts; ++expert) {
        const std::int64_t last = args.picks.begin[expert + 1];
        std::int64_t pick = first_of_token(args.picks.tokens, args.picks.begin[expert], last, first);
        const std::int64_t end = first_of_token(args.picks.tokens, pick, last, first + count);
        const Matrix& down = args.down[expert];
        constexpr int kPicks = kMostTokens < 4 ? kMostTokens : 4;
        for (; pick + kPicks <= end; pick += kPicks)
          add_picks_of_tile<F, kPicks>(args, down, tile, pick, first);
        for (; pick < end; ++pick) add_picks_of_tile<F, 1>(args, down, tile, pick, first);
      }
      sum_groups(args, tile, groups, first, count);
    }
  }
}
