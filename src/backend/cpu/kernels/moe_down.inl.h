// The down product of a mixture of experts over packed weights. Its sum runs over a token's experts inside
// each group of units, and then over groups (docs/NUMERICS.md, Mixture of experts).

/// p[group][token][row] += weight * t for `tokens` places of one expert, from `place` on, and the rows from
/// `first_row` on of the tile at `weights`.
template <class Source, int tokens, int vectors>
EIDER_ALWAYS_INLINE void add_places(const MoeDownArgs& args, const std::byte* weights, std::int64_t first_row,
                                    std::int64_t place, std::int64_t first_token) {
  using Unit = UnitProduct<Source, tokens, vectors>;
  const std::int64_t columns = args.down[0].columns;
  const std::int64_t units = units_of<typename Source::Format>(columns);
  float* group = args.scratch;
  Parts<tokens, vectors> t;
  for (std::int64_t unit = 0; unit < units; group += args.tile_tokens * kRowTile) {
    Unit::multiply(weights, first_row, unit++, columns, args.in, place, t);
    if (args.units_per_group == 2 && unit < units) {
      Parts<tokens, vectors> second;
      Unit::multiply(weights, first_row, unit++, columns, args.in, place, second);
      unroll<tokens>([&](auto i) __attribute__((always_inline)) {
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          t.part[i][v] = t.part[i][v] + second.part[i][v];
        });
      });
    }
    unroll<tokens>([&](auto i) __attribute__((always_inline)) {
      const Floats weight = splat(args.picks.weights[place + i]);
      float* p = group + (args.picks.tokens[place + i] - first_token) * kRowTile + first_row;
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        store(p + v * kLanes, fma(weight, t.part[i][v], load(p + v * kLanes)));
      });
    });
  }
}

template <class Source, int tokens>
EIDER_ALWAYS_INLINE void add_places_of_tile(const MoeDownArgs& args, const std::byte* weights,
                                            std::int64_t place, std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<Source::Format::kProduct, tokens>;
  for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
    add_places<Source, tokens, kRowVectors>(args, weights, row, place, first_token);
}

/// Adds places [place, end) of one expert, whose tile lies at `packed`.
template <class F>
EIDER_ALWAYS_INLINE void add_expert(const MoeDownArgs& args, const std::byte* packed, std::int64_t place,
                                    std::int64_t end, std::int64_t first_token) {
  if constexpr (kOpenedTokens > 0) {
    if (end - place >= kFewestForOpened) {
      const std::byte* opened = Opened<F>::open(packed, args.down[0].columns, args.opened);
      for (; place + kOpenedTokens <= end; place += kOpenedTokens)
        add_places_of_tile<Opened<F>, kOpenedTokens>(args, opened, place, first_token);
    }
  }
  constexpr int kPlaces = kPackedTokens < 2 ? 1 : 2;
  for (; place + kPlaces <= end; place += kPlaces)
    add_places_of_tile<Packed<F>, kPlaces>(args, packed, place, first_token);
  for (; place < end; ++place) add_places_of_tile<Packed<F>, 1>(args, packed, place, first_token);
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
        y.part[0][0] = load(args.scratch + (group * args.tile_tokens + token) * kRowTile + row);
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
  const std::int64_t units = units_of<F>(args.down[0].columns);
  const std::int64_t groups = (units + args.units_per_group - 1) / args.units_per_group;
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    for (std::int64_t first = 0; first < args.tokens; first += args.tile_tokens) {
      const std::int64_t left = args.tokens - first;
      const std::int64_t count = left < args.tile_tokens ? left : args.tile_tokens;
      for (std::int64_t group = 0; group < groups; ++group)
        for (std::int64_t i = 0; i < count * kRowTile; ++i)
          args.scratch[group * args.tile_tokens * kRowTile + i] = 0;
      for (std::int64_t i = 0; i < args.picks.count; ++i) {
        const std::int64_t last = args.picks.begin[i + 1];
        const std::int64_t place = first_of_token(args.picks.tokens, args.picks.begin[i], last, first);
        const std::int64_t end = first_of_token(args.picks.tokens, place, last, first + count);
        const Matrix& down = args.down[args.picks.chosen[i]];
        if (place < end) add_expert<F>(args, down.data + tile * down.row_bytes, place, end, first);
      }
      sum_groups(args, tile, groups, first, count);
    }
  }
}
