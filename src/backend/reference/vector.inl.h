// Kernels over vectors: reductions, norms, rotation, and what is done element by element.

/// TreeSum for many streams side by side: `lanes` trees that grow together, added in place.
template <std::int64_t kMostLanes>
class LaneTreeSum {
 public:
  EIDER_ALWAYS_INLINE explicit LaneTreeSum(std::int64_t lanes) : lanes_(lanes) {}

  /// Where the streams' next values go; add() then takes them in.
  EIDER_ALWAYS_INLINE float* next() { return subtree_[depth_]; }
  EIDER_ALWAYS_INLINE void add() {
    ++depth_;
    for (std::uint64_t digits = count_++; (digits & 1) != 0; digits >>= 1) join();
  }
  /// The trees of what was added, at least one value each.
  EIDER_ALWAYS_INLINE float* total() {
    while (depth_ > 1) join();
    return subtree_[0];
  }

 private:
  EIDER_ALWAYS_INLINE void join() {
    --depth_;
    float* left = subtree_[depth_ - 1];
    const float* right = subtree_[depth_];
    for (std::int64_t i = 0; i < lanes_; ++i) left[i] = left[i] + right[i];
  }

  float subtree_[40][kMostLanes];  // complete subtrees, the larger ones first; 40 serve 2^39 values
  std::int64_t lanes_;
  std::int64_t depth_ = 0;
  std::uint64_t count_ = 0;
};

/// The reduction of docs/NUMERICS.md over elements 0..n-1, n >= 1: add(sum, i) is `sum` with element i added.
template <class Add>
EIDER_ALWAYS_INLINE float reduce(std::int64_t n, Add add) {
  constexpr std::int64_t kBlock = 1024;
  TreeSum<float> blocks;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = n - begin < kBlock ? n : begin + kBlock;
    float partial[32] = {};
    std::int64_t i = begin;
    for (; i + 32 <= end; i += 32)
      for (int j = 0; j < 32; ++j) partial[j] = add(partial[j], i + j);
    for (int j = 0; i + j < end; ++j) partial[j] = add(partial[j], i + j);
    blocks.add(fold32(partial));
  }
  return blocks.total();
}

inline void rms_norm(const RmsNormArgs& args, Items vectors) {
  for (std::int64_t vector = vectors.begin; vector < vectors.end; ++vector) {
    const float* in = args.in + vector * args.width;
    float* out = args.out + vector * args.width;
    const float sum = reduce(args.width, [&](float a, std::int64_t i) { return std::fma(in[i], in[i], a); });
    const float r = 1.0f / std::sqrt(sum / static_cast<float>(args.width) + args.eps);
    for (std::int64_t i = 0; i < args.width; ++i) out[i] = (in[i] * r) * args.weight[i];
  }
}

inline void rope(const RopeArgs& args, Items items) {
  const std::int64_t pairs = args.pairs;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const float* cosines = args.table + item / args.heads * 2 * pairs;
    const float* sines = cosines + pairs;
    const float* in = args.in + item * args.head_dim;
    float* out = args.out + item * args.head_dim;
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float x0 = in[i];
      const float x1 = in[pairs + i];
      out[i] = std::fma(x0, cosines[i], -(x1 * sines[i]));
      out[pairs + i] = std::fma(x0, sines[i], x1 * cosines[i]);
    }
    for (std::int64_t i = 2 * pairs; i < args.head_dim; ++i) out[i] = in[i];
  }
}

inline void add(const ElementwiseArgs& args, Items elements) {
  for (std::int64_t i = elements.begin; i < elements.end; ++i) args.out[i] = args.a[i] + args.b[i];
}

inline void gated_silu(const ElementwiseArgs& args, Items elements) {
  for (std::int64_t i = elements.begin; i < elements.end; ++i) args.out[i] = silu32(args.a[i]) * args.b[i];
}

inline void gated_gelu_tanh(const ElementwiseArgs& args, Items elements) {
  for (std::int64_t i = elements.begin; i < elements.end; ++i)
    args.out[i] = gelu_tanh32(args.a[i]) * args.b[i];
}

inline void soft_cap(const SoftCapArgs& args, Items elements) {
  for (std::int64_t i = elements.begin; i < elements.end; ++i) args.out[i] = soft_cap32(args.in[i], args.cap);
}
