// The sum over the units of a contraction.

/// The tree of docs/NUMERICS.md over units as they come: a binary counter of complete subtrees
/// (numerics.inl.h has it for one value; here a digit is a register tile). A tile goes to memory once a unit,
/// vector by vector: compilers copy whole tiles by way of the stack.
template <int tokens, int vectors>
class PartsTree {
 public:
  EIDER_ALWAYS_INLINE void add(Parts<tokens, vectors>& parts) {
    float* level = levels_[0];
    for (std::uint64_t digits = count_; (digits & 1) != 0; digits >>= 1, level += kTile)
      add_level(level, parts);
    ++count_;
    each([&](auto t, auto v)
             __attribute__((always_inline)) { store(level + (t * vectors + v) * kLanes, parts.part[t][v]); });
  }
  EIDER_ALWAYS_INLINE void total(Parts<tokens, vectors>& parts) {
    const int lowest = __builtin_ctzll(count_);
    float* level = levels_[lowest];
    each([&](auto t, auto v)
             __attribute__((always_inline)) { parts.part[t][v] = load(level + (t * vectors + v) * kLanes); });
    for (std::uint64_t digits = count_ >> lowest >> 1; digits != 0; digits >>= 1) {
      level += kTile;
      if ((digits & 1) != 0) add_level(level, parts);
    }
  }

 private:
  static constexpr int kTile = tokens * vectors * kLanes;

  template <class Body>
  static EIDER_ALWAYS_INLINE void each(Body body) {
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { body(t, v); });
    });
  }
  static EIDER_ALWAYS_INLINE void add_level(const float* level, Parts<tokens, vectors>& parts) {
    each([&](auto t, auto v) __attribute__((always_inline)) {
      parts.part[t][v] = load(level + (t * vectors + v) * kLanes) + parts.part[t][v];
    });
  }

  alignas(64) float levels_[20][kTile];  // 2^20 units and more columns than a matrix may have
  std::uint64_t count_ = 0;
};
