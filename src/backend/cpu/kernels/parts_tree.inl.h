// The sum over the units of a contraction.

/// The tree of docs/NUMERICS.md over units as they come (numerics.inl.h has it for one value; here a value is
/// a register tile). Units wait in fours and are then added at once, so that most units only store their
/// parts; above, a binary counter holds the complete subtrees of 4, 8, 16, ... units. Tiles go to memory
/// vector by vector: compilers copy whole tiles by way of the stack.
template <int tokens, int vectors>
class PartsTree {
 public:
  /// `parts` is undefined afterwards.
  EIDER_ALWAYS_INLINE void add(Parts<tokens, vectors>& parts) {
    const std::uint64_t place = count_++ % 4;
    if (place < 3) return store_tile(waiting_[place], parts);
    each([&](auto t, auto v, int at) __attribute__((always_inline)) {
      parts.part[t][v] =
          (load(waiting_[0] + at) + load(waiting_[1] + at)) + (load(waiting_[2] + at) + parts.part[t][v]);
    });
    float* level = levels_[0];
    for (std::uint64_t digits = count_ / 4 - 1; (digits & 1) != 0; digits >>= 1, level += kTile)
      add_to(level, parts);
    store_tile(level, parts);
  }
  /// The tree of what was added, at least one unit.
  EIDER_ALWAYS_INLINE void total(Parts<tokens, vectors>& parts) {
    std::uint64_t digits = count_ / 4;
    const float* level = levels_[0];
    if (const std::uint64_t left = count_ % 4; left > 0) {
      each([&](auto t, auto v, int at) __attribute__((always_inline)) {
        Floats sum = load(waiting_[0] + at);
        if (left > 1) sum = sum + load(waiting_[1] + at);
        if (left > 2) sum = sum + load(waiting_[2] + at);
        parts.part[t][v] = sum;
      });
    } else {
      const int lowest = __builtin_ctzll(digits);
      level = levels_[lowest];
      each([&](auto t, auto v, int at)
               __attribute__((always_inline)) { parts.part[t][v] = load(level + at); });
      level += kTile;
      digits = digits >> lowest >> 1;
    }
    for (; digits != 0; digits >>= 1, level += kTile)
      if ((digits & 1) != 0) add_to(level, parts);
  }

 private:
  static constexpr int kTile = tokens * vectors * kLanes;

  /// body(token, vector, place of the vector in a tile)
  template <class Body>
  static EIDER_ALWAYS_INLINE void each(Body body) {
    unroll<tokens>([&](auto t) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { body(t, v, (t * vectors + v) * kLanes); });
    });
  }
  static EIDER_ALWAYS_INLINE void store_tile(float* tile, const Parts<tokens, vectors>& parts) {
    each([&](auto t, auto v, int at) __attribute__((always_inline)) { store(tile + at, parts.part[t][v]); });
  }
  /// parts = tile + parts
  static EIDER_ALWAYS_INLINE void add_to(const float* tile, Parts<tokens, vectors>& parts) {
    each([&](auto t, auto v, int at)
             __attribute__((always_inline)) { parts.part[t][v] = load(tile + at) + parts.part[t][v]; });
  }

  alignas(64) float waiting_[3][kTile];
  alignas(64) float levels_[18][kTile];  // 2^20 units and more columns than a matrix may have
  std::uint64_t count_ = 0;
};
