// The query rows of attention: what each sees of a block, and the softmax of its scores.

/// One query row and what it sees of the block at hand.
struct QueryRow {
  const float* query;  // [head_dim]
  Items visible;       // positions, counted from the block's first
};

/// The rows of a tile, in ascending token: so both ends of what they see ascend too.
struct AttentionRows {
  QueryRow* row;
  float* scores;                         // [rows][kKvBlockPositions], then weights
  float* sums;                           // [rows][sum_stride]: weighted sums of values of the blocks so far
  float *max, *denominator;              // [rows]: of the blocks so far
  float *block_max, *block_denominator;  // [rows]: of the block at hand
  float *keep, *take;                    // [rows]: factors of what is summed already and of the block at hand
  std::int64_t sum_stride;
};

/// fold() of docs/NUMERICS.md with `join` for addition, of several rows at a time: the results are r[row][0].
template <int stride = 16, class Join>
EIDER_ALWAYS_INLINE void fold_rows(float (*r)[32], std::int64_t rows, Join join) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (int j = 0; j < stride; ++j) r[row][j] = join(r[row][j], r[row][j + stride]);
  if constexpr (stride > 1) fold_rows<stride / 2>(r, rows, join);
}

/// The 32-key parts of a block that hold `visible`.
EIDER_ALWAYS_INLINE Items parts_of_32(Items visible) {
  return {visible.begin / 32 * 32, (visible.end + 31) / 32 * 32};
}

/// One row's scores from products, -inf where it sees no key; best[j]: the greatest of those at j mod 32.
EIDER_ALWAYS_INLINE void scale_scores(const AttentionArgs& args, Items visible, float* s, float* best) {
  constexpr float kInfinity = __builtin_inff();
  const float scale = args.scale, softcap = args.softcap;
  const Items parts = parts_of_32(visible);
  for (std::int64_t i = parts.begin; i < parts.end; i += 32)
    for (int j = 0; j < 32; ++j) s[i + j] = s[i + j] * scale;
  if (softcap != 0)
    for (std::int64_t i = parts.begin; i < parts.end; i += 32)
      for (int j = 0; j < 32; ++j) s[i + j] = soft_cap32(s[i + j], softcap);
  for (std::int64_t i = parts.begin; i < visible.begin; ++i) s[i] = -kInfinity;
  for (std::int64_t i = visible.end; i < parts.end; ++i) s[i] = -kInfinity;
  for (int j = 0; j < 32; ++j) best[j] = -kInfinity;
  for (std::int64_t i = parts.begin; i < parts.end; i += 32)
    for (int j = 0; j < 32; ++j) best[j] = max32(best[j], s[i + j]);
}

/// One row's weights from scores; partial[j]: the sum of those at j mod 32.
EIDER_ALWAYS_INLINE void exponentiate(Items visible, float max, float* s, float* partial) {
  const Items parts = parts_of_32(visible);
  for (int j = 0; j < 32; ++j) partial[j] = 0;
  for (std::int64_t i = parts.begin; i < parts.end; i += 32)
    for (int j = 0; j < 32; ++j) {
      const float weight = exp32(s[i + j] - max);
      s[i + j] = weight;
      partial[j] = partial[j] + weight;
    }
}

/// Scores of rows [begin, end) to weights exp(s - max), with maxima and denominators. An invisible key's
/// weight is 0, which changes no denominator. The order of a maximum does not matter: with a NaN anywhere,
/// or without a finite maximum, the whole result is NaN.
inline void softmax(const AttentionArgs& args, const AttentionRows& tile, Items rows) {
  constexpr std::int64_t kMost = 16;
  alignas(64) float partial[kMost][32];
  for (std::int64_t first = rows.begin; first < rows.end; first += kMost) {
    const std::int64_t count = rows.end - first < kMost ? rows.end - first : kMost;
    float* scores = tile.scores + first * kKvBlockPositions;
    float* max = tile.block_max + first;
    for (std::int64_t i = 0; i < count; ++i)
      scale_scores(args, tile.row[first + i].visible, scores + i * kKvBlockPositions, partial[i]);
    fold_rows(
        partial, count, [](float a, float b) __attribute__((always_inline)) { return max32(a, b); });
    for (std::int64_t i = 0; i < count; ++i) max[i] = partial[i][0];
    for (std::int64_t i = 0; i < count; ++i)
      exponentiate(tile.row[first + i].visible, max[i], scores + i * kKvBlockPositions, partial[i]);
    fold_rows(
        partial, count, [](float a, float b) __attribute__((always_inline)) { return a + b; });
    for (std::int64_t i = 0; i < count; ++i) tile.block_denominator[first + i] = partial[i][0];
  }
}

/// Merges the maxima and denominators of the block at hand for rows [begin, fresh), and takes them as they
/// are for rows [fresh, end), whose first block it is.
inline void merge_states(const AttentionRows& tile, Items rows, std::int64_t fresh) {
  for (std::int64_t row = rows.begin; row < fresh; ++row) {
    const float max = max32(tile.max[row], tile.block_max[row]);
    tile.keep[row] = exp32(tile.max[row] - max);
    tile.take[row] = exp32(tile.block_max[row] - max);
    tile.max[row] = max;
    tile.denominator[row] =
        fma32(tile.denominator[row], tile.keep[row], tile.block_denominator[row] * tile.take[row]);
  }
  for (std::int64_t row = fresh; row < rows.end; ++row) {
    tile.max[row] = tile.block_max[row];
    tile.denominator[row] = tile.block_denominator[row];
  }
}
