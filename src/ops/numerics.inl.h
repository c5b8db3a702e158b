// The functions of docs/NUMERICS.md that operations are built from: tree, fold, exp and its relatives.
// Included inside a namespace of its own by every file that is compiled for a particular instruction set, so
// that no copy of a function is shared between them; numerics.h is the copy for everything else. For the same
// reason nothing of the standard library is called but the compiler's fma.
//
// Not a stand-alone header: the including file has included <cstdint>, "base/float_bits.h" and
// "base/inline.h".
//
// The functions of one float have no branches, only selects, so that compilers vectorise loops over them.
// Polynomials come from scripts/fit_polynomials.py; docs/NUMERICS.md states the measured errors.

/// a * b + c, rounded once.
EIDER_ALWAYS_INLINE float fma32(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

/// a > b ? a : b: of two zeros or a NaN the second.
EIDER_ALWAYS_INLINE float max32(float a, float b) {
  return a > b ? a : b;
}

/// The order of top-k and of sampling ranks: score descending, index ascending, NaN last.
EIDER_ALWAYS_INLINE bool ranks_before(float score_a, std::int64_t index_a, float score_b,
                                      std::int64_t index_b) {
  const bool a_is_nan = score_a != score_a;
  const bool b_is_nan = score_b != score_b;
  if (a_is_nan != b_is_nan) return b_is_nan;
  if (score_a > score_b) return true;
  if (score_a < score_b) return false;
  return index_a < index_b;
}

/// tree(p[0..n)) of a stream: p[0] if n = 1, else tree(p[0..m)) + tree(p[m..n)), m the largest power of two
/// below n. Complete subtrees stand at the set bits of `count`, as digits of a binary counter. T is float or
/// a vector of lanes. At least one value must have been added before total().
template <class T>
class TreeSum {
 public:
  EIDER_ALWAYS_INLINE void add(T value) {
    int level = 0;
    for (std::uint64_t digits = count_; (digits & 1) != 0; digits >>= 1) {
      value = subtree_[level] + value;
      ++level;
    }
    subtree_[level] = value;
    ++count_;
  }

  EIDER_ALWAYS_INLINE T total() const {
    int level = __builtin_ctzll(count_);
    T sum = subtree_[level];
    for (std::uint64_t digits = count_ >> level >> 1; digits != 0; digits >>= 1) {
      ++level;
      if ((digits & 1) != 0) sum = subtree_[level] + sum;
    }
    return sum;
  }

 private:
  static constexpr int kLevels = 40;  // 2^40 - 1 values

  T subtree_[kLevels];
  std::uint64_t count_ = 0;
};

/// fold(r[0..32)): r[j] += r[j + 16] for j < 16, then + 8, + 4, + 2, + 1; destroys r, the result is r[0].
EIDER_ALWAYS_INLINE float fold32(float* r) {
  for (int stride = 16; stride >= 1; stride /= 2)
    for (int j = 0; j < stride; ++j) r[j] += r[j + stride];
  return r[0];
}

/// At most 1 ulp; exp(+-0) = 1, exp(-inf) = 0; overflows to infinity, underflows through the denormals.
EIDER_ALWAYS_INLINE float exp32(float x) {
  // Beyond these bounds the result is 0 or infinity; a NaN passes both.
  float bounded = x < -105.0f ? -105.0f : x;
  bounded = bounded > 90.0f ? 90.0f : bounded;
  // n = round(x / ln 2): adding 1.5 * 2^23 leaves it in the last bits of the sum.
  constexpr float kRound = 0x1.8p23f;
  const float shifted = fma32(bounded, 0x1.715476p0f, kRound);
  const std::uint32_t n = float_bits(shifted) - float_bits(kRound);
  const float n_float = shifted - kRound;
  float r = fma32(n_float, -0x1.62e430p-1f, bounded);  // exact
  r = fma32(n_float, 0x1.05c610p-29f, r);              // ln 2 = 0x1.62e430p-1 - 0x1.05c610p-29
  float p = 0x1.6a2430p-10f;
  p = fma32(p, r, 0x1.1239e4p-7f);
  p = fma32(p, r, 0x1.5558f2p-5f);
  p = fma32(p, r, 0x1.555492p-3f);
  p = fma32(p, r, 0x1.fffffcp-2f);
  p = fma32(p, r, 1.0f);
  p = fma32(p, r, 1.0f);
  // 2^n in two factors, for n beyond the exponents of one float; only the second product may round.
  const std::uint32_t half_n = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) >> 1);
  const float scale_a = bits_float((half_n + 127u) << 23);
  const float scale_b = bits_float((n - half_n + 127u) << 23);
  return p * scale_a * scale_b;
}

/// 1 / (1 + exp(-x))
EIDER_ALWAYS_INLINE float sigmoid32(float x) {
  return 1.0f / (1.0f + exp32(-x));
}

/// x / (1 + exp(-x))
EIDER_ALWAYS_INLINE float silu32(float x) {
  return x / (1.0f + exp32(-x));
}

/// x / (1 + exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3): gelu in its tanh form.
EIDER_ALWAYS_INLINE float gelu_tanh32(float x) {
  const float u = 0x1.988454p-1f * fma32((0.044715f * x) * x, x, x);
  return x / (1.0f + exp32(-2.0f * u));
}

/// Odd; tanh(+-0) = +-0.
EIDER_ALWAYS_INLINE float tanh32(float x) {
  const std::uint32_t sign = float_bits(x) & 0x80000000u;
  const float a = bits_float(float_bits(x) ^ sign);
  const float square = a * a;
  float p = -0x1.9b302ap-8f;
  p = fma32(p, square, 0x1.593d02p-6f);
  p = fma32(p, square, -0x1.b9287ap-5f);
  p = fma32(p, square, 0x1.110d26p-3f);
  p = fma32(p, square, -0x1.55554ap-2f);
  const float near_zero = fma32(a * square, p, a);
  const float elsewhere = 1.0f - 2.0f / (1.0f + exp32(2.0f * a));
  // A select of bits: GCC would move the division into a branch of a select of floats.
  const std::uint32_t is_near_zero = a < 0.55f ? 0xffffffffu : 0u;
  const std::uint32_t magnitude =
      (float_bits(near_zero) & is_near_zero) | (float_bits(elsewhere) & ~is_near_zero);
  return bits_float(magnitude | sign);
}

/// cap * tanh(x / cap)
EIDER_ALWAYS_INLINE float soft_cap32(float x, float cap) {
  return cap * tanh32(x / cap);
}

/// log(1 + exp(x)) = max(x, 0) + log(1 + t), t = exp(-|x|); log(1 + t) = 2 atanh(s), s = t / (2 + t).
EIDER_ALWAYS_INLINE float softplus32(float x) {
  const float a = bits_float(float_bits(x) & 0x7fffffffu);
  const float t = exp32(-a);
  const float s = t / (2.0f + t);
  const float square = s * s;
  float p = 0x1.f17342p-3f;
  p = fma32(p, square, 0x1.b6e6ccp-3f);
  p = fma32(p, square, 0x1.2508b2p-2f);
  p = fma32(p, square, 0x1.9996b0p-2f);
  p = fma32(p, square, 0x1.555558p-1f);
  const float log1p = fma32(s * square, p, 2.0f * s);
  return max32(x, 0.0f) + log1p;
}
