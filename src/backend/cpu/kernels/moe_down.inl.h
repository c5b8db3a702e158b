// The down product of a mixture of experts over packed weights. Its sum runs over a token's experts inside
// each group of units, and then over groups (docs/NUMERICS.md, Mixture of experts).

/// p[token][row] += weight * t for one group of units, of which `units` lie at `weights`, unit `unit` first:
/// `tokens` places of one expert, from `place` on, and the rows from `first_row` on.
template <class Source, int tokens, int vectors>
EIDER_ALWAYS_INLINE void add_group(const MoeDownArgs& args, const TileScales<Source>& scales,
                                   const std::byte* weights, std::int64_t units, std::int64_t first_row,
                                   std::int64_t unit, std::int64_t place, std::int64_t first_token,
                                   float* p) {
  using Unit = UnitProduct<Source, tokens, vectors>;
  const std::int64_t columns = args.down[0].columns;
  Parts<tokens, vectors> t;
  Unit::multiply(weights, first_row, unit, columns, args.in, place, t);
  scales.scale_unit(unit, first_row, t);
  if (units == 2) {
    Parts<tokens, vectors> second;
    Unit::multiply(weights + Source::kBytes, first_row, unit + 1, columns, args.in, place, second);
    scales.scale_unit(unit + 1, first_row, second);
    unroll<tokens>([&](auto i) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        t.part[i][v] = t.part[i][v] + second.part[i][v];
      });
    });
  }
  scales.scale_rows(first_row, t);
  unroll<tokens>([&](auto i) __attribute__((always_inline)) {
    const Floats weight = splat(args.picks.weights[place + i]);
    float* sum = p + (args.picks.tokens[place + i] - first_token) * kRowTile + first_row;
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      store(sum + v * kLanes, fma(weight, t.part[i][v], load(sum + v * kLanes)));
    });
  });
}

/// The groups of units [first, end), which lie at `weights`; `first` begins a group.
template <class Source, int tokens, int vectors>
EIDER_ALWAYS_INLINE void add_groups_of(const MoeDownArgs& args, const TileScales<Source>& scales,
                                       const std::byte* weights, std::int64_t first, std::int64_t end,
                                       std::int64_t first_row, std::int64_t place, std::int64_t first_token) {
  const std::int64_t size = args.units_per_group;
  float* p = args.scratch + first / size * args.tile_tokens * kRowTile;
  for (std::int64_t unit = first; unit < end; unit += size, p += args.tile_tokens * kRowTile) {
    const std::int64_t units = end - unit < size ? end - unit : size;
    add_group<Source, tokens, vectors>(args, scales, weights + (unit - first) * Source::kBytes, units,
                                       first_row, unit, place, first_token, p);
  }
}

/// `weights`: the tile at `packed` as `Source` reads it.
template <class Source, int tokens>
EIDER_ALWAYS_INLINE void add_places_of_tile(const MoeDownArgs& args, const std::byte* packed,
                                            const std::byte* weights, std::int64_t place,
                                            std::int64_t first_token) {
  const TileScales<Source> scales(packed, args.down[0]);
  constexpr int kRowVectors = kVectors<Source::kProduct, tokens>;
  const std::int64_t units = units_of<Source::kProduct>(args.down[0].columns);
  for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
    add_groups_of<Source, tokens, kRowVectors>(args, scales, weights, 0, units, row, place, first_token);
}

/// Places [place, place + tokens) of one expert, from units that are opened on the way.
template <class Source, int tokens>
EIDER_ALWAYS_INLINE void add_places_staged(const MoeDownArgs& args, const TileUnits& from, std::int64_t place,
                                           std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<Source::kProduct, tokens>;
  Stage<Source> stage;
  const TileScales<Source> scales(nullptr, args.down[0]);
  const std::int64_t units = units_of<Source::kProduct>(args.down[0].columns);
  for (std::int64_t first = 0; first < units; first += stage.kUnits) {
    const std::int64_t end = units - first < stage.kUnits ? units : first + stage.kUnits;
    const std::byte* opened = stage.open(from, first, end - first);
    for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
      add_groups_of<Source, tokens, kRowVectors>(args, scales, opened, first, end, row, place, first_token);
  }
}

/// How many places of an expert are multiplied at a time where its tile is not opened as a whole.
inline constexpr int kPlaces = kPackedTokens < 2 ? 1 : 2;

/// How a format's expert is added: add(args, packed tile, place, end, first_token) for places [place, end).
template <class F>
struct PackedExpert {
  static EIDER_ALWAYS_INLINE void add(const MoeDownArgs& args, const std::byte* packed, std::int64_t place,
                                      std::int64_t end, std::int64_t first_token) {
    if constexpr (kOpenedTokens > 0) {
      if (end - place >= kFewestForOpened) {
        const std::byte* opened = Opened<F>::open(packed, args.down[0].columns, args.opened);
        for (; place + kOpenedTokens <= end; place += kOpenedTokens)
          add_places_of_tile<Opened<F>, kOpenedTokens>(args, packed, opened, place, first_token);
      }
    }
    for (; place + kPlaces <= end; place += kPlaces)
      add_places_of_tile<Packed<F>, kPlaces>(args, packed, packed, place, first_token);
    for (; place < end; ++place) add_places_of_tile<Packed<F>, 1>(args, packed, packed, place, first_token);
  }
};

template <class Source>
struct StagedExpert {
  TileUnits from;  // `units` is not read

  EIDER_ALWAYS_INLINE void add(const MoeDownArgs& args, const std::byte* packed, std::int64_t place,
                               std::int64_t end, std::int64_t first_token) const {
    TileUnits units{packed, from.open, from.unit_bytes};
    if constexpr (kOpenedTokens > 0) {
      if (end - place > kPlaces) units = open_tile<Source>(units, args.down[0].columns, args.opened);
      for (; place + kOpenedTokens <= end; place += kOpenedTokens)
        add_places_staged<Source, kOpenedTokens>(args, units, place, first_token);
    }
    for (; place + kPlaces <= end; place += kPlaces)
      add_places_staged<Source, kPlaces>(args, units, place, first_token);
    if constexpr (kPlaces > 1)
      for (; place < end; ++place) add_places_staged<Source, 1>(args, units, place, first_token);
  }
};

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

template <ProductRule rule, class Expert>
EIDER_ALWAYS_INLINE void moe_down_of(const MoeDownArgs& args, Items tiles, const Expert& expert) {
  const std::int64_t units = units_of<rule>(args.down[0].columns);
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
        if (place < end) expert.add(args, down.data + tile * down.row_bytes, place, end, first);
      }
      sum_groups(args, tile, groups, first, count);
    }
  }
}

template <class F>
inline void moe_down(const MoeDownArgs& args, Items tiles) {
  moe_down_of<F::kProduct>(args, tiles, PackedExpert<F>{});
}

/// Of every tabled format that opens to `Source`.
template <class Source>
__attribute__((noinline)) void staged_moe_down(const MoeDownArgs& args, Items tiles, TileUnits from) {
  moe_down_of<Source::kProduct>(args, tiles, StagedExpert<Source>{from});
}

template <class F>
inline void tabled_moe_down(const MoeDownArgs& args, Items tiles) {
  staged_moe_down<StagedFormat<F>>(args, tiles, {nullptr, opener(F::kFormat), UnitLayout<F>::kBytes});
}
