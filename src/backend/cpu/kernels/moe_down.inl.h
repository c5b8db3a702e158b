// The down product of a mixture of experts over packed weights. Its sum runs over a token's experts inside
// each group of units, and then over groups (docs/NUMERICS.md, Mixture of experts).

/// t = t + second
template <int tokens, int vectors>
EIDER_ALWAYS_INLINE void add_parts(Parts<tokens, vectors>& t, const Parts<tokens, vectors>& second) {
  unroll<tokens>([&](auto i) __attribute__((always_inline)) {
    unroll<vectors>([&](auto v)
                        __attribute__((always_inline)) { t.part[i][v] = t.part[i][v] + second.part[i][v]; });
  });
}

/// p[token][row] += weight * t for one group, whose units add up to `t`: `tokens` places of one expert, from
/// `place` on, and the rows from `first_row` on.
template <class Scales, int tokens, int vectors>
EIDER_ALWAYS_INLINE void add_group(const MoeDownArgs& args, const Scales& scales, Parts<tokens, vectors>& t,
                                   std::int64_t first_row, std::int64_t place, std::int64_t first_token,
                                   float* p) {
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
  using Unit = UnitProduct<Source, tokens, vectors>;
  const std::int64_t columns = args.down[0].columns;
  const std::int64_t size = args.units_per_group, stride = args.tile_tokens * kRowTile;
  float* p = args.scratch + first / size * stride;
  std::int64_t unit = first;
  if constexpr (Source::kKind == UnitKind::kFours && kUnitsAtOnce<vectors> % 2 == 0) {
    constexpr int kUnits = kUnitsAtOnce<vectors>;
    for (; unit + kUnits <= end && (unit + kUnits) * 32 <= columns; unit += kUnits) {
      Parts<tokens, vectors> parts[kUnits];
      Unit::multiply_whole(weights + (unit - first) * Source::kBytes, first_row, unit, columns, args.in,
                           place, parts);
      unroll<kUnits>([&](auto i) __attribute__((always_inline)) {
        scales.scale_unit(unit + i, first_row, parts[i]);
      });
      for (std::int64_t i = 0; i < kUnits; i += size, p += stride) {
        if (size == 2) add_parts(parts[i], parts[i + 1]);
        add_group(args, scales, parts[i], first_row, place, first_token, p);
      }
    }
  }
  for (; unit < end; unit += size, p += stride) {
    const std::byte* from = weights + (unit - first) * Source::kBytes;
    Parts<tokens, vectors> t;
    Unit::multiply(from, first_row, unit, columns, args.in, place, t);
    scales.scale_unit(unit, first_row, t);
    if (size == 2 && unit + 1 < end) {
      Parts<tokens, vectors> second;
      Unit::multiply(from + Source::kBytes, first_row, unit + 1, columns, args.in, place, second);
      scales.scale_unit(unit + 1, first_row, second);
      add_parts(t, second);
    }
    add_group(args, scales, t, first_row, place, first_token, p);
  }
}

/// Place `place` of one expert, from its packed tile.
template <class F>
EIDER_ALWAYS_INLINE void add_packed_place(const MoeDownArgs& args, const std::byte* packed,
                                          std::int64_t place, std::int64_t first_token) {
  const TileScales<Packed<F>> scales(packed, args.down[0]);
  const std::byte* weights = units_of_tile<F::kProduct>(packed, args.down[0]);
  constexpr int kRowVectors = kVectors<F::kProduct, 1>;
  const std::int64_t units = units_of<F::kProduct>(args.down[0].columns);
  for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
    add_groups_of<Packed<F>, 1, kRowVectors>(args, scales, weights, 0, units, row, place, first_token);
}

/// Places [place, place + tokens) of one expert, from opened units. `packed`: its tile.
template <class Source, int tokens>
EIDER_ALWAYS_INLINE void add_opened_places(const MoeDownArgs& args, const std::byte* packed,
                                           const TileUnits& from, std::int64_t place,
                                           std::int64_t first_token) {
  constexpr int kRowVectors = kVectors<Source::kProduct, tokens>;
  Stage<Source> stage;
  const TileScales<Source> scales(packed, args.down[0]);
  const std::int64_t columns = args.down[0].columns, units = units_of<Source::kProduct>(columns);
  for (std::int64_t first = 0; first < units; first += stage.kUnits) {
    const std::int64_t end = units - first < stage.kUnits ? units : first + stage.kUnits;
    const std::byte* opened = stage.open(from, first, columns);
    for (std::int64_t row = 0; row < kRowTile; row += kRowVectors * kLanes)
      add_groups_of<Source, tokens, kRowVectors>(args, scales, opened, first, end, row, place, first_token);
  }
}

/// Places [place, end) of one expert by twos at least; returns the first that is left. `packed`: its tile.
template <class Source>
__attribute__((noinline)) std::int64_t add_several_places(const MoeDownArgs& args, const std::byte* packed,
                                                          TileUnits from, std::int64_t place,
                                                          std::int64_t end, std::int64_t first_token) {
  if (end - place > 2) from = open_tile<Source>(from, args.down[0].columns, args.opened);
  for (; place + kOpenedTokens <= end; place += kOpenedTokens)
    add_opened_places<Source, kOpenedTokens>(args, packed, from, place, first_token);
  for (; place + 2 <= end; place += 2) add_opened_places<Source, 2>(args, packed, from, place, first_token);
  return place;
}

/// One place, of a format whose units are always opened.
template <class Source>
__attribute__((noinline)) void add_one_place(const MoeDownArgs& args, const TileUnits& from,
                                             std::int64_t place, std::int64_t first_token) {
  add_opened_places<Source, 1>(args, from.units, from, place, first_token);
}

/// Places [place, end) of one expert, whose tile lies at `packed`.
template <class F>
EIDER_ALWAYS_INLINE void add_expert(const MoeDownArgs& args, const std::byte* packed, std::int64_t place,
                                    std::int64_t end, std::int64_t first_token) {
  const TileUnits units = packed_units<F>(packed, args.down[0]);
  if constexpr (kOpenedTokens > 0)
    if (end - place > 1) place = add_several_places<Opened<F>>(args, packed, units, place, end, first_token);
  for (; place < end; ++place) {
    if constexpr (PackedFormat<F>::kTabled)
      add_one_place<Opened<F>>(args, units, place, first_token);
    else
      add_packed_place<F>(args, packed, place, first_token);
  }
}

/// out[token] = tree over the groups of p, for the tokens of a tile.
inline void sum_groups(const MoeDownArgs& args, std::int64_t tile, std::int64_t groups,
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
  const std::int64_t units = units_of<F::kProduct>(args.down[0].columns);
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
