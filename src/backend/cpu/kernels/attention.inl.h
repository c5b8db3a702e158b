// Attention over KV blocks, in the order of docs/NUMERICS.md. A row is one query head of one token; the rows
// of a tile of tokens that read the same KV head go through a block together: scores, a small matrix product
// with lanes along keys; a softmax of each row; the weighted sum of values, one with lanes along dimensions.

/// Query rows that share what is loaded of keys and values.
inline constexpr int kQueryRows = kAccumulators / 2 < 8 ? kAccumulators / 2 : 8;
/// Vectors that `rows` rows accumulate side by side: a power of two.
template <int rows>
inline constexpr int kMostVectors = rows * 8 <= kAccumulators   ? 8
                                    : rows * 4 <= kAccumulators ? 4
                                                                : 2;

/// A KV head's part of a block. Element is F16::Block or F32::Block.
template <class Element>
struct HeadBlock {
  const Element* keys;  // [head_dim][key_stride]
  std::int64_t key_stride;
  const Element* values;  // [kKvBlockPositions][value_stride], behind the keys
  std::int64_t value_stride;
  std::int64_t elements;  // of both
  const Element* next;    // what is likely to be read after that
};

/// As prefetch() of `count` elements from `at` on, in a block that another one follows elsewhere. Rows of
/// keys and values divide how far ahead is asked, so that none lies in both.
template <class Element>
EIDER_ALWAYS_INLINE void prefetch_row(const HeadBlock<Element>& block, const Element* at,
                                      std::int64_t count) {
  constexpr std::int64_t kAhead = 4096 / sizeof(Element), kFarAhead = 16384 / sizeof(Element);
  constexpr std::int64_t kLine = 64 / sizeof(Element);
  const auto ahead = [&](std::int64_t distance) __attribute__((always_inline)) {
    const std::int64_t offset = at - block.keys + distance;
    return offset < block.elements ? block.keys + offset : block.next + (offset - block.elements);
  };
  const Element *near = ahead(kAhead), *far = ahead(kFarAhead);
  for (std::int64_t i = 0; i < count; i += kLine) {
    __builtin_prefetch(near + i, 0, 3);
    __builtin_prefetch(far + i, 0, 2);
  }
}

/// Whether a register tile may read keys and values where they are stored: those of many rows read a block
/// that was converted to floats before.
template <int rows, class Element>
inline constexpr bool kFromMemory = rows < kQueryRows || !std::is_same_v<Element, F32::Block>;

/// body(first vector, integral constant vectors) over [begin, end) in pieces of at most `most` vectors.
template <int most, class Body>
EIDER_ALWAYS_INLINE void over_vectors(Items vectors, Body body) {
  for (; vectors.end - vectors.begin >= most; vectors.begin += most)
    body(vectors.begin, std::integral_constant<int, most>{});
  if constexpr (most > 1) over_vectors<most / 2>(vectors, body);
}

/// body(integral constant count), 1 <= count <= most.
template <int most, class Body>
EIDER_ALWAYS_INLINE void with_constant(std::int64_t count, Body body) {
  if constexpr (most > 1) {
    if (count < most) return with_constant<most - 1>(count, body);
  }
  body(std::integral_constant<int, most>{});
}

/// body(first row, constant rows, first vector, constant vectors) over register tiles. Rows run inside
/// vectors, so that the vectors' part of the keys or values stays in the first cache.
template <class Body>
EIDER_ALWAYS_INLINE void over_tiles(Items rows, Items vectors, Body body) {
  const std::int64_t full = rows.end - (rows.end - rows.begin) % kQueryRows;
  if (rows.begin < full)
    over_vectors<kMostVectors<kQueryRows>>(vectors, [&](std::int64_t vector, auto count) {
      for (std::int64_t row = rows.begin; row < full; row += kQueryRows)
        body(row, std::integral_constant<int, kQueryRows>{}, vector, count);
    });
  if (full < rows.end)
    with_constant<kQueryRows - 1>(rows.end - full, [&](auto left) {
      over_vectors<kMostVectors<decltype(left)::value>>(
          vectors, [&](std::int64_t vector, auto count) { body(full, left, vector, count); });
    });
}

/// scores[row] = q . k for `vectors` vectors of keys from `first_key` on, by the float product rule.
template <int rows, int vectors, class Element>
void dot_keys(const QueryRow* row, const HeadBlock<Element>& block, std::int64_t first_key,
              std::int64_t head_dim, float* scores) {
  const float* q[rows];
  unroll<rows>([&](auto r) __attribute__((always_inline)) { q[r] = row[r].query; });
  PartsTree<rows, vectors> tree;
  Parts<rows, vectors> parts;
  for (std::int64_t begin = 0; begin < head_dim; begin += 32) {
    const std::int64_t end = head_dim - begin < 32 ? head_dim : begin + 32;
    unroll<rows>([&](auto r) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { parts.part[r][v] = splat(0); });
    });
    for (std::int64_t d = begin; d < end; ++d) {
      const Element* keys = block.keys + d * block.key_stride + first_key;
      if constexpr (kFromMemory<rows, Element>) prefetch_row(block, keys, vectors * kLanes);
      Floats key[vectors];
      unroll<vectors>([&](auto v)
                          __attribute__((always_inline)) { key[v] = load_elements(keys + v * kLanes); });
      unroll<rows>([&](auto r) __attribute__((always_inline)) {
        const Floats value = splat(q[r][d]);
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          parts.part[r][v] = fma(key[v], value, parts.part[r][v]);
        });
      });
    }
    tree.add(parts);
  }
  tree.total(parts);
  unroll<rows>([&](auto r) __attribute__((always_inline)) {
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      store(scores + r * kKvBlockPositions + v * kLanes, parts.part[r][v]);
    });
  });
}

/// Weighted sums of values over the block, `vectors` vectors of dimensions from `dimension` on. sums: at that
/// dimension. The first `merged` rows are added to what they have already.
template <int rows, int vectors, class Element>
void sum_values(const AttentionRows& tile, std::int64_t first_row, std::int64_t merged,
                const HeadBlock<Element>& block, std::int64_t dimension, float* sums) {
  const Element* values = block.values + dimension;
  const std::int64_t value_stride = block.value_stride;
  const QueryRow* row = tile.row + first_row;
  const float* weights = tile.scores + first_row * kKvBlockPositions;
  Floats sum[rows][vectors];
  const auto add = [&](auto r, std::int64_t i) __attribute__((always_inline)) {
    const Floats weight = splat(weights[r * kKvBlockPositions + i]);
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      sum[r][v] = fma(load_elements(values + i * value_stride + v * kLanes), weight, sum[r][v]);
    });
  };
  // What a row does not see is not added as zero: its memory may hold anything. All rows see `common`.
  const std::int64_t common = row[rows - 1].visible.begin;
  const std::int64_t common_end = row[0].visible.end > common ? row[0].visible.end : common;
  unroll<rows>([&](auto r) __attribute__((always_inline)) {
    unroll<vectors>([&](auto v) __attribute__((always_inline)) { sum[r][v] = splat(0); });
    const std::int64_t end = row[r].visible.end < common ? row[r].visible.end : common;
    for (std::int64_t i = row[r].visible.begin; i < end; ++i) add(r, i);
  });
  for (std::int64_t i = common; i < common_end; ++i) {
    if constexpr (kFromMemory<rows, Element>)
      prefetch_row(block, values + i * value_stride, vectors * kLanes);
    Floats value[vectors];
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      value[v] = load_elements(values + i * value_stride + v * kLanes);
    });
    unroll<rows>([&](auto r) __attribute__((always_inline)) {
      const Floats weight = splat(weights[r * kKvBlockPositions + i]);
      unroll<vectors>([&](auto v)
                          __attribute__((always_inline)) { sum[r][v] = fma(value[v], weight, sum[r][v]); });
    });
  }
  unroll<rows>([&](auto r) __attribute__((always_inline)) {
    for (std::int64_t i = common_end; i < row[r].visible.end; ++i) add(r, i);
    float* out = sums + r * tile.sum_stride;
    if (r < merged) {
      const Floats keep = splat(tile.keep[first_row + r]);
      const Floats take = splat(tile.take[first_row + r]);
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        sum[r][v] = fma(load(out + v * kLanes), keep, sum[r][v] * take);
      });
    }
    unroll<vectors>([&](auto v) __attribute__((always_inline)) { store(out + v * kLanes, sum[r][v]); });
  });
}

/// Takes the rows [begin, end), each of which sees a part of `block`, through it.
template <class Element>
void attend_block(const AttentionArgs& args, const HeadBlock<Element>& block, const AttentionRows& tile,
                  Items rows, std::int64_t fresh) {
  const std::int64_t head_dim = args.rows.layout.head_dim;
  const QueryRow* row = tile.row;
  const Items seen = {row[rows.begin].visible.begin / kLanes,
                      (row[rows.end - 1].visible.end + kLanes - 1) / kLanes};
  over_tiles(rows, seen, [&](std::int64_t first, auto count, std::int64_t vector, auto vectors) {
    constexpr int kRows = decltype(count)::value, kCount = decltype(vectors)::value;
    const std::int64_t key = vector * kLanes;
    if (key >= row[first + kRows - 1].visible.end || key + kCount * kLanes <= row[first].visible.begin)
      return;
    dot_keys<kRows, kCount>(row + first, block, key, head_dim, tile.scores + first * kKvBlockPositions + key);
  });
  softmax(args, tile, rows);
  merge_states(tile, rows, fresh);
  over_tiles(rows, {0, (head_dim + kLanes - 1) / kLanes},
             [&](std::int64_t first, auto count, std::int64_t vector, auto vectors) {
               constexpr int kRows = decltype(count)::value, kCount = decltype(vectors)::value;
               sum_values<kRows, kCount>(tile, first, fresh - first, block, vector * kLanes,
                                         tile.sums + first * tile.sum_stride + vector * kLanes);
             });
}

/// Hands out parts of a thread's scratch.
class Scratch {
 public:
  EIDER_ALWAYS_INLINE explicit Scratch(float* begin) : next_(begin) {}
  EIDER_ALWAYS_INLINE float* take(std::int64_t floats) {
    float* part = next_;
    next_ += (floats + 15) / 16 * 16;
    return part;
  }

 private:
  float* next_;
};

/// The rows of one run of tokens of a sequence that read one KV head.
template <class F>  // F16 or F32: of the stored keys and values
class AttentionTile {
 public:
  using Element = typename F::Block;

  AttentionTile(const AttentionArgs& args, std::int64_t kv_head)
      : args_(args),
        layout_(args.rows.layout),
        kv_head_(kv_head),
        group_(args.heads / layout_.num_key_value_heads) {
    Scratch scratch(args.scratch);
    const std::int64_t rows = kQueryTile * group_;
    const std::int64_t stride = attention_row_floats(layout_.head_dim);
    keys_ = scratch.take(layout_.head_dim * kKeyStride);
    values_ = scratch.take(kKvBlockPositions * stride);
    tile_.row = reinterpret_cast<QueryRow*>(scratch.take(rows * (sizeof(QueryRow) / sizeof(float))));
    tile_.scores = scratch.take(rows * kKvBlockPositions);
    tile_.sums = scratch.take(rows * stride);
    tile_.sum_stride = stride;
    for (float** numbers : {&tile_.max, &tile_.denominator, &tile_.block_max, &tile_.block_denominator,
                            &tile_.keep, &tile_.take})
      *numbers = scratch.take(rows);
  }

  /// All blocks of tokens [begin, end), which are of one sequence.
  void attend(Items tokens) {
    set_queries(tokens);
    const Items blocks = run_visible_blocks(args_.rows.positions, tokens.begin, tokens.end, args_.window);
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      const Items seeing = show(tokens, block);
      std::int64_t fresh = seeing.begin;  // the first of them whose first block it is
      while (fresh < seeing.end && blocks_of(tokens.begin + fresh).begin < block) ++fresh;
      const Element* next = block + 1 < blocks.end           ? stored(tokens.begin, block + 1, kv_head_)
                            : tokens.end < args_.rows.tokens ? first_stored(tokens.end)
                                                             : nullptr;
      through(tokens.begin, block, next, {seeing.begin * group_, seeing.end * group_}, fresh * group_);
    }
    finish(tokens);
  }

  /// One block of a run's tokens, by itself: block_row_floats() of each row of the group of each token that
  /// sees it. first_block: where the results of the run's first token begin.
  void attend_alone(Items tokens, std::int64_t block, float* first_block) {
    set_queries(tokens);
    const std::int64_t count = tokens.end - tokens.begin;
    const std::int64_t row_floats = block_row_floats(layout_.head_dim);
    const Items seeing = show(tokens, block);
    // The other heads of a block are likely to come next.
    const Element* next = kv_head_ + 1 < layout_.num_key_value_heads
                              ? stored(tokens.begin, block, kv_head_ + 1)
                          : block + 1 < blocks_of(tokens.end - 1).end ? stored(tokens.begin, block + 1, 0)
                                                                      : nullptr;
    through(tokens.begin, block, next, {seeing.begin * group_, seeing.end * group_}, seeing.begin * group_);
    for (std::int64_t token = 0; token < count; ++token) {
      const Items blocks = blocks_of(tokens.begin + token);
      if (token >= seeing.begin && token < seeing.end) {
        float* out = first_block + ((block - blocks.begin) * args_.heads + kv_head_ * group_) * row_floats;
        for (std::int64_t row = token * group_; row < (token + 1) * group_; ++row, out += row_floats) {
          for (std::int64_t d = 0; d < layout_.head_dim; ++d) out[d] = tile_.sums[row * tile_.sum_stride + d];
          out[layout_.head_dim] = tile_.max[row];
          out[layout_.head_dim + 1] = tile_.denominator[row];
        }
      }
      first_block += (blocks.end - blocks.begin) * args_.heads * row_floats;
    }
  }

 private:
  /// Floats from a dimension's keys to the next one's: an odd number of cache lines, so that a column of them
  /// lies in all sets of the cache.
  static constexpr std::int64_t kKeyStride = kKvBlockPositions + 16;
  /// Rows that make it worth to convert a block beforehand.
  static constexpr std::int64_t kManyRows = kQueryRows + 1;

  Items blocks_of(std::int64_t token) const {
    return visible_blocks(args_.rows.positions[token], args_.window);
  }
  /// Sets what each of a run's tokens sees of the block. Returns those that see anything, counted from the
  /// run's first.
  Items show(Items tokens, std::int64_t block) {
    const std::int64_t count = tokens.end - tokens.begin;
    Items seeing = {count, 0};
    for (std::int64_t token = 0; token < count; ++token) {
      const Items blocks = blocks_of(tokens.begin + token);
      if (block < blocks.begin || block >= blocks.end) continue;
      if (token < seeing.begin) seeing.begin = token;
      seeing.end = token + 1;
      set_visible(token, args_.rows.positions[tokens.begin + token], block);
    }
    return seeing;
  }
  std::int64_t head_of(std::int64_t row) const { return kv_head_ * group_ + row % group_; }

  void set_queries(Items tokens) {
    for (std::int64_t row = 0; row < (tokens.end - tokens.begin) * group_; ++row)
      tile_.row[row].query =
          args_.query + ((tokens.begin + row / group_) * args_.heads + head_of(row)) * layout_.head_dim;
  }

  void set_visible(std::int64_t token, std::int64_t position, std::int64_t block) {
    const std::int64_t base = block * kKvBlockPositions;
    const std::int64_t first = args_.window == 0 ? 0 : position - args_.window + 1 - base;
    const std::int64_t end = position + 1 - base;
    const Items visible = {first > 0 ? first : 0, end < kKvBlockPositions ? end : kKvBlockPositions};
    for (std::int64_t member = 0; member < group_; ++member)
      tile_.row[token * group_ + member].visible = visible;
  }

  /// Where the keys of a head in a block of the token's sequence begin.
  const Element* stored(std::int64_t token, std::int64_t block, std::int64_t kv_head) const {
    const KvRows& kv = args_.rows;
    return reinterpret_cast<const Element*>(kv.sequences[kv.sequence[token]].blocks[kv.slot.kind][block]) +
           layout_.keys(kv.slot.index, kv_head);
  }
  const Element* first_stored(std::int64_t token) const {
    return stored(token, blocks_of(token).begin, kv_head_);
  }

  /// `next`: what is read after the block's keys and values, if that is known.
  void through(std::int64_t token, std::int64_t block, const Element* next, Items rows, std::int64_t fresh) {
    const Element* keys = stored(token, block, kv_head_);
    const std::int64_t head_dim = layout_.head_dim, half = head_dim * kKvBlockPositions;
    const HeadBlock<Element> head = {keys,     kKvBlockPositions, keys + half,
                                     head_dim, 2 * half,          next == nullptr ? keys : next};
    if (rows.end - rows.begin >= kManyRows || head_dim % kLanes != 0)
      attend_block(
          args_, as_floats(head, {tile_.row[rows.begin].visible.begin, tile_.row[rows.end - 1].visible.end}),
          tile_, rows, fresh);
    else
      attend_block(args_, head, tile_, rows, fresh);
  }

  /// What is seen of a block, in floats.
  HeadBlock<F32::Block> as_floats(const HeadBlock<Element>& block, Items seen) {
    const std::int64_t head_dim = layout_.head_dim;
    const std::int64_t first = seen.begin / kLanes * kLanes;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      prefetch_row(block, block.keys + d * block.key_stride + first, seen.end - first);
      for (std::int64_t i = first; i < seen.end; i += kLanes)
        store(keys_ + d * kKeyStride + i, load_elements(block.keys + d * block.key_stride + i));
    }
    const std::int64_t whole = head_dim / kLanes * kLanes;
    for (std::int64_t i = seen.begin; i < seen.end; ++i) {
      const Element* from = block.values + i * block.value_stride;
      prefetch_row(block, from, head_dim);
      float* to = values_ + i * tile_.sum_stride;
      for (std::int64_t d = 0; d < whole; d += kLanes) store(to + d, load_elements(from + d));
      for (std::int64_t d = whole; d < head_dim; ++d) F::decode(from[d], to + d);
    }
    const auto* keys = reinterpret_cast<const F32::Block*>(keys_);
    return {keys, kKeyStride, reinterpret_cast<const F32::Block*>(values_), tile_.sum_stride, 0, keys};
  }

  void finish(Items tokens) {
    for (std::int64_t row = 0; row < (tokens.end - tokens.begin) * group_; ++row) {
      const float* sums = tile_.sums + row * tile_.sum_stride;
      const float denominator = tile_.denominator[row];
      float* out =
          args_.out + ((tokens.begin + row / group_) * args_.heads + head_of(row)) * layout_.head_dim;
      for (std::int64_t d = 0; d < layout_.head_dim; ++d) out[d] = sums[d] / denominator;
    }
  }

  const AttentionArgs& args_;
  const KvBlockLayout& layout_;
  const std::int64_t kv_head_, group_;
  float *keys_, *values_;  // of a block that is converted
  AttentionRows tile_;
};

template <class F>
inline void attention(const AttentionArgs& args, Items items) {
  const KvRows& rows = args.rows;
  const std::int64_t tiles = (rows.tokens + args.tile_tokens - 1) / args.tile_tokens;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    AttentionTile<F> tile(args, item / tiles);
    // First and last tiles in turn: later tokens see more, and threads do one range of items each.
    const std::int64_t i = item % tiles;
    std::int64_t token = (i % 2 == 0 ? i / 2 : tiles - 1 - i / 2) * args.tile_tokens;
    const std::int64_t end = rows.tokens - token < args.tile_tokens ? rows.tokens : token + args.tile_tokens;
    while (token < end) {
      const std::int64_t next = run_end(rows.sequence, token, end);
      tile.attend({token, next});
      token = next;
    }
  }
}

template <class F>
inline void attention_blocks(const AttentionArgs& args, Items items) {
  const KvRows& rows = args.rows;
  const std::int64_t kv_heads = rows.layout.num_key_value_heads;
  const std::int64_t token_floats = args.heads * block_row_floats(rows.layout.head_dim);  // of a block
  std::int64_t first_item = 0;                                                            // of the run
  float* first_block = args.blocks;  // of the run's first token
  for (Items run = {0, 0}; run.begin < rows.tokens; run.begin = run.end) {
    run.end = run_end(rows.sequence, run.begin, rows.tokens);
    const Items seen = run_visible_blocks(rows.positions, run.begin, run.end, args.window);
    const std::int64_t run_items = (seen.end - seen.begin) * kv_heads;
    const std::int64_t begin = items.begin > first_item ? items.begin : first_item;
    const std::int64_t end = items.end < first_item + run_items ? items.end : first_item + run_items;
    for (std::int64_t item = begin; item < end; ++item)
      AttentionTile<F>(args, (item - first_item) % kv_heads)
          .attend_alone(run, seen.begin + (item - first_item) / kv_heads, first_block);
    first_item += run_items;
    for (std::int64_t token = run.begin; token < run.end; ++token) {
      const Items blocks = visible_blocks(rows.positions[token], args.window);
      first_block += (blocks.end - blocks.begin) * token_floats;
    }
  }
}

inline void attention_merge(const AttentionArgs& args, Items items) {
  const std::int64_t head_dim = args.rows.layout.head_dim;
  const std::int64_t row_floats = block_row_floats(head_dim);
  const float* first_block = args.blocks;  // of the token
  for (std::int64_t token = 0; token < args.rows.tokens; ++token) {
    const Items blocks = visible_blocks(args.rows.positions[token], args.window);
    const std::int64_t first_item = token * args.heads;
    const Items heads = {items.begin > first_item ? items.begin - first_item : 0,
                         items.end < first_item + args.heads ? items.end - first_item : args.heads};
    for (std::int64_t head = heads.begin; head < heads.end; ++head) {
      const float* block = first_block + head * row_floats;
      float* out = args.out + (first_item + head) * head_dim;
      for (std::int64_t d = 0; d < head_dim; ++d) out[d] = block[d];
      float max = block[head_dim], denominator = block[head_dim + 1];
      for (std::int64_t i = blocks.begin + 1; i < blocks.end; ++i) {
        block += args.heads * row_floats;
        const float merged = max32(max, block[head_dim]);
        const float keep = exp32(max - merged), take = exp32(block[head_dim] - merged);
        max = merged;
        denominator = fma32(denominator, keep, block[head_dim + 1] * take);
        for (std::int64_t d = 0; d < head_dim; ++d) out[d] = fma32(out[d], keep, block[d] * take);
      }
      for (std::int64_t d = 0; d < head_dim; ++d) out[d] = out[d] / denominator;
    }
    first_block += (blocks.end - blocks.begin) * args.heads * row_floats;
  }
}
