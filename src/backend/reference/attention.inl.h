// Attention over KV blocks, and the store of keys and values into them.

/// A KV type: how floats are stored, and a block's part read as floats (converted into `scratch` where it
/// must be).
struct HalfKv {
  using Element = std::uint16_t;
  static EIDER_ALWAYS_INLINE Element store(float value) { return float_to_half(value); }
  static EIDER_ALWAYS_INLINE const float* floats(const Element* from, std::int64_t count, float* scratch) {
    for (std::int64_t i = 0; i < count; ++i) scratch[i] = half_to_float(from[i]);
    return scratch;
  }
};
struct FloatKv {
  using Element = float;
  static EIDER_ALWAYS_INLINE Element store(float value) { return value; }
  static EIDER_ALWAYS_INLINE const float* floats(const Element* from, std::int64_t, float*) { return from; }
};

/// Where an item of StoreKvArgs is read and stored.
template <class Kv>
struct KvPlace {
  EIDER_ALWAYS_INLINE KvPlace(const StoreKvArgs& args, std::int64_t item) {
    const KvRows& rows = args.rows;
    const KvBlockLayout& layout = rows.layout;
    const std::int64_t head = item / rows.tokens, token = item % rows.tokens;
    const std::int64_t position = rows.positions[token], i = position % kKvBlockPositions;
    auto* block = reinterpret_cast<typename Kv::Element*>(
        rows.sequences[rows.sequence[token]].blocks[rows.slot.kind][position / kKvBlockPositions]);
    keys = block + layout.keys(rows.slot.index, head) + i;
    values = block + layout.values(rows.slot.index, head) + i * layout.head_dim;
    source = (token * layout.num_key_value_heads + head) * layout.head_dim;
  }
  typename Kv::Element *keys, *values;
  std::int64_t source;  // of args.keys and args.values
};

template <class Kv>
inline void store_kv(const StoreKvArgs& args, Items items) {
  const std::int64_t head_dim = args.rows.layout.head_dim;
  // Each element of a key goes to a cache line of its own, which is asked for while other items are stored.
  constexpr std::int64_t kAhead = 2;
  for (std::int64_t item = items.begin - kAhead; item < items.end; ++item) {
    if (item + kAhead < items.end) {
      const KvPlace<Kv> later(args, item + kAhead);
      for (std::int64_t d = 0; d < head_dim; ++d) __builtin_prefetch(later.keys + d * kKvBlockPositions, 1);
    }
    if (item < items.begin) continue;
    const KvPlace<Kv> place(args, item);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      place.keys[d * kKvBlockPositions] = Kv::store(args.keys[place.source + d]);
      place.values[d] = Kv::store(args.values[place.source + d]);
    }
  }
}

/// q . k for 32 keys, by the float product rule. keys: [head_dim][128], at the first of the 32.
EIDER_ALWAYS_INLINE void dot_keys(const float* q, const float* keys, std::int64_t head_dim, float* dots) {
  LaneTreeSum<32> sum(32);
  for (std::int64_t begin = 0; begin < head_dim; begin += 32) {
    const std::int64_t end = head_dim - begin < 32 ? head_dim : begin + 32;
    float unit[32] = {};
    for (std::int64_t d = begin; d < end; ++d)
      for (int j = 0; j < 32; ++j) unit[j] = std::fma(keys[d * kKvBlockPositions + j], q[d], unit[j]);
    float* next = sum.next();
    for (int j = 0; j < 32; ++j) next[j] = unit[j];
    sum.add();
  }
  const float* total = sum.total();
  for (int j = 0; j < 32; ++j) dots[j] = total[j];
}

/// Weighted sum of value rows `keys` for dimensions [0, n), n <= 32. values: at the first of the dimensions.
EIDER_ALWAYS_INLINE void sum_values(const float* weights, const float* values, std::int64_t head_dim,
                                    Items keys, std::int64_t n, float* out) {
  float sum[32] = {};
  for (std::int64_t i = keys.begin; i < keys.end; ++i)
    for (std::int64_t j = 0; j < n; ++j) sum[j] = std::fma(weights[i], values[i * head_dim + j], sum[j]);
  for (std::int64_t j = 0; j < n; ++j) out[j] = sum[j];
}

/// A block's softmax before it is merged with others; the weighted sum of values stands beside it.
struct BlockSoftmax {
  float max;
  float denominator;
};

/// One query over the keys `visible` of a block. keys: [head_dim][128], values: [128][head_dim]; out:
/// [head_dim].
EIDER_ALWAYS_INLINE BlockSoftmax attend_block(const AttentionArgs& args, const float* q, const float* keys,
                                              const float* values, Items visible, float* out) {
  const std::int64_t head_dim = args.rows.layout.head_dim;
  constexpr float kInfinity = __builtin_inff();
  float e[kKvBlockPositions] = {};  // an invisible key's 0 changes no sum below: addends are not negative
  float best[32];
  for (int j = 0; j < 32; ++j) best[j] = -kInfinity;
  for (std::int64_t chunk = visible.begin / 32 * 32; chunk < visible.end; chunk += 32) {
    float* s = e + chunk;
    dot_keys(q, keys + chunk, head_dim, s);
    for (int j = 0; j < 32; ++j) s[j] = s[j] * args.scale;
    if (args.softcap != 0)
      for (int j = 0; j < 32; ++j) s[j] = soft_cap32(s[j], args.softcap);
    for (int j = 0; j < 32; ++j) {
      const bool seen = chunk + j >= visible.begin && chunk + j < visible.end;
      s[j] = seen ? s[j] : -kInfinity;
      best[j] = max32(best[j], s[j]);
    }
  }
  // The order of a maximum does not matter: with a NaN anywhere the whole result is NaN.
  float max = best[0];
  for (int j = 1; j < 32; ++j) max = max32(max, best[j]);

  for (std::int64_t i = 0; i < kKvBlockPositions; ++i) {
    const float weight = exp32(e[i] - max);
    e[i] = i >= visible.begin && i < visible.end ? weight : 0.0f;
  }
  const float denominator = reduce(kKvBlockPositions, [&](float a, std::int64_t i) { return a + e[i]; });
  std::int64_t d = 0;
  for (; d + 32 <= head_dim; d += 32) sum_values(e, values + d, head_dim, visible, 32, out + d);
  if (d < head_dim) sum_values(e, values + d, head_dim, visible, head_dim - d, out + d);
  return {max, denominator};
}

/// Merges a later block into (state, out).
EIDER_ALWAYS_INLINE void merge_block(BlockSoftmax block, const float* block_out, std::int64_t head_dim,
                                     BlockSoftmax& state, float* out) {
  const float max = max32(state.max, block.max);
  const float a = exp32(state.max - max);
  const float b = exp32(block.max - max);
  state = {max, std::fma(state.denominator, a, block.denominator * b)};
  for (std::int64_t d = 0; d < head_dim; ++d) out[d] = std::fma(out[d], a, block_out[d] * b);
}

/// Rows `tokens`, all of one sequence, over the keys of one KV head.
template <class Kv>
EIDER_ALWAYS_INLINE void attend_rows(const AttentionArgs& args, std::int64_t kv_head, Items tokens) {
  const KvRows& rows = args.rows;
  const KvBlockLayout& layout = rows.layout;
  const std::int64_t head_dim = layout.head_dim;
  const std::int64_t group = args.heads / layout.num_key_value_heads;
  const std::int64_t block_elements = kKvBlockPositions * head_dim;
  float* key_scratch = args.scratch;
  float* value_scratch = key_scratch + block_elements;
  float* block_out = value_scratch + block_elements;
  auto* states = reinterpret_cast<BlockSoftmax*>(block_out + head_dim);  // [tokens][group]

  const auto first_visible = [&](std::int64_t token) {
    const std::int64_t first = rows.positions[token] - args.window + 1;
    return args.window == 0 || first < 0 ? std::int64_t{0} : first;
  };
  std::byte* const* blocks = rows.sequences[rows.sequence[tokens.begin]].blocks[rows.slot.kind];
  const std::int64_t last_block = rows.positions[tokens.end - 1] / kKvBlockPositions;
  for (std::int64_t block = first_visible(tokens.begin) / kKvBlockPositions; block <= last_block; ++block) {
    const auto* elements = reinterpret_cast<const typename Kv::Element*>(blocks[block]);
    const float* keys =
        Kv::floats(elements + layout.keys(rows.slot.index, kv_head), block_elements, key_scratch);
    const float* values =
        Kv::floats(elements + layout.values(rows.slot.index, kv_head), block_elements, value_scratch);
    const std::int64_t base = block * kKvBlockPositions;
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      const std::int64_t first = first_visible(token) - base;
      const std::int64_t end = rows.positions[token] + 1 - base;
      const Items visible = {first > 0 ? first : 0, end < kKvBlockPositions ? end : kKvBlockPositions};
      if (visible.begin >= visible.end) continue;
      for (std::int64_t member = 0; member < group; ++member) {
        const std::int64_t at = (token * args.heads + kv_head * group + member) * head_dim;
        BlockSoftmax& state = states[(token - tokens.begin) * group + member];
        const bool first_block = first >= 0;
        float* out = first_block ? args.out + at : block_out;
        const BlockSoftmax softmax = attend_block(args, args.query + at, keys, values, visible, out);
        if (first_block)
          state = softmax;
        else
          merge_block(softmax, block_out, head_dim, state, args.out + at);
      }
    }
  }
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token)
    for (std::int64_t member = 0; member < group; ++member) {
      float* out = args.out + (token * args.heads + kv_head * group + member) * head_dim;
      const float denominator = states[(token - tokens.begin) * group + member].denominator;
      for (std::int64_t d = 0; d < head_dim; ++d) out[d] = out[d] / denominator;
    }
}

template <class Kv>
inline void attention(const AttentionArgs& args, Items items) {
  const KvRows& rows = args.rows;
  const std::int64_t tiles = (rows.tokens + args.tile_tokens - 1) / args.tile_tokens;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    std::int64_t token = item % tiles * args.tile_tokens;
    const std::int64_t end = rows.tokens - token < args.tile_tokens ? rows.tokens : token + args.tile_tokens;
    while (token < end) {
      std::int64_t run_end = token + 1;
      while (run_end < end && rows.sequence[run_end] == rows.sequence[token]) ++run_end;
      attend_rows<Kv>(args, item / tiles, {token, run_end});
      token = run_end;
    }
  }
}
