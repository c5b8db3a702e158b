// Where products read a tile of weights from: as packed (packed.h), or opened: codes as bytes and scales as
// floats, so that many tokens share the work of taking them apart. Both answer the same questions.

/// Opening a tile costs about as much as multiplying it with this many tokens.
inline constexpr int kFewestForOpened = 16;

/// What is added to a tabled format's codes: nothing where none is below 0, else kSignedOffset, or where
/// products of small unsigned codes are cheaper, the least power of two that leaves none below 0.
template <class F>
inline constexpr int kTabledOffset = codes_are_places<F>()                              ? 0
                                     : !kSmallCodesAreCheaper || largest_code<F>() > 63 ? kSignedOffset
                                     : largest_code<F>() > 31                           ? 64
                                     : largest_code<F>() > 15                           ? 32
                                                                                        : 16;
/// Whether products take its codes as signed ones.
template <class F>
inline constexpr bool kTabledSigned = !codes_are_places<F>() && kTabledOffset<F> == kSignedOffset;

/// How a unit is multiplied.
enum class UnitKind : std::uint8_t {
  kFloat,       // a chain of multiply-adds
  kInteger32,   // one dot product
  kHalves32,    // two
  kInteger256,  // sub-blocks whose sums fit 16 bits
  kSummed256,   // sub-blocks that are summed in 32 bits
};
template <ProductRule rule>
inline constexpr UnitKind kUnitKind = is_float_rule(rule)                     ? UnitKind::kFloat
                                      : rule == ProductRule::kInteger32       ? UnitKind::kInteger32
                                      : rule == ProductRule::kInteger32Halves ? UnitKind::kHalves32
                                                                              : UnitKind::kInteger256;

/// body(integral constant 0) .. body(integral constant count - 1), unrolled.
template <int count, class Body>
EIDER_ALWAYS_INLINE void unroll(Body body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, count>{});
}

/// Asks for `bytes` that lie some way ahead of `at`: `wanted` where memory is read once and in order, which
/// hardware prefetchers do not follow as fast as it can be multiplied. A line is called into the second-level
/// cache first, which can wait for more of them at a time than the first-level one. Kernels ask little by
/// little: a burst would stall the loads behind it.
template <bool wanted, std::int64_t bytes>
EIDER_ALWAYS_INLINE void prefetch(const void* at) {
  constexpr std::int64_t kAhead = 4096, kFarAhead = 16384;
  if constexpr (wanted)
    for (std::int64_t line = 0; line < bytes; line += 64) {
      __builtin_prefetch(static_cast<const std::byte*>(at) + kAhead + line, 0, 3);
      __builtin_prefetch(static_cast<const std::byte*>(at) + kFarAhead + line, 0, 2);
    }
}

/// A packed tile of a float format: [column][row].
template <class F, ProductRule rule = F::kProduct>
struct Packed {
  static constexpr ProductRule kProduct = F::kProduct;
  static constexpr UnitKind kKind = kUnitKind<kProduct>;
  static constexpr bool kInOrder = true;  // tiles are read one after the other, from memory
  static constexpr std::int64_t kColumnBytes = kRowTile * sizeof(typename F::Block);
  static constexpr std::int64_t kBytes = 32 * kColumnBytes;  // of a unit

  static EIDER_ALWAYS_INLINE Floats elements(const std::byte* column, std::int64_t row) {
    return load_elements(reinterpret_cast<const typename F::Block*>(column) + row);
  }
};

/// What the integer formats have in common. Codes are unsigned, too large by kOffset.
template <class F>
struct PackedIntegers {
  static constexpr ProductRule kProduct = F::kProduct;
  static constexpr UnitKind kKind = kUnitKind<kProduct>;
  static constexpr bool kSigned = PackedFormat<F>::kBits == 8;
  static constexpr bool kHasMin = F::kHasMin;
  static constexpr int kDotBits = PackedFormat<F>::kBits;
  static constexpr int kSubScaleCount = PackedFormat<F>::kSubScales;
  static constexpr int kSubMinPairs = OpenedLayout<F>::kSubMinPairs;
  static constexpr bool kInOrder = true;
  using Layout = UnitLayout<F>;
  static constexpr int kOffset = PackedFormat<F>::kOffset;
  static constexpr std::int64_t kBytes = Layout::kBytes;  // of a unit
  static constexpr std::int64_t kStripBytes = Layout::kStripBytes;

  /// The codes of group `group` of a strip for the rows from `row` on.
  template <int group>
  static EIDER_ALWAYS_INLINE Codes codes(const std::byte* strip, std::int64_t row) {
    constexpr int kBits = Layout::kBits;
    const std::byte* rows = strip + row * 4;
    if constexpr (kBits == 8) return prepare_signed(load_codes(rows + group * kPlane));
    const Codes low = bits<group % 2 * 4, 15>(load_codes(rows + group / 2 * kPlane));
    const std::byte* high = rows + Layout::kHighPlane;
    if constexpr (kBits == 5) return low | bits<group - 4, 16>(load_codes(high));
    if constexpr (kBits == 6) return low | bits<group % 4 * 2 - 4, 48>(load_codes(high + group / 4 * kPlane));
    return low;
  }
  static EIDER_ALWAYS_INLINE Floats scale(const std::byte* unit, std::int64_t row) {
    return load_elements(reinterpret_cast<const F16::Block*>(unit + Layout::kScales) + row);
  }
  static EIDER_ALWAYS_INLINE Floats min_scale(const std::byte* unit, std::int64_t row) {
    return load_elements(reinterpret_cast<const F16::Block*>(unit + Layout::kMinScales) + row);
  }
};

template <class F>
struct Packed<F, ProductRule::kInteger32> : PackedIntegers<F> {
  static constexpr int kOffset = PackedFormat<F>::kBits == 8 ? kSignedOffset : PackedFormat<F>::kOffset;
};

template <class F>
struct Packed<F, ProductRule::kInteger256> : PackedIntegers<F> {
  using Layout = UnitLayout<F>;

  /// Sub-scale `j` as scaled_dot() takes it.
  static EIDER_ALWAYS_INLINE Ints sub_scale(const std::byte* unit, std::int64_t j, std::int64_t row) {
    const std::byte* from = unit + Layout::kSubScales + j * kRowTile + row;
    return scale_words(PackedFormat<F>::kOffset == 0 ? load_unsigned_bytes(from) : load_signed_bytes(from));
  }
  /// Sub-minima 2 * pair and 2 * pair + 1, each of 16 bits.
  static EIDER_ALWAYS_INLINE Ints min_pair(const std::byte* unit, std::int64_t pair, std::int64_t row) {
    return load_byte_pairs(unit + Layout::kMins + (pair * kRowTile + row) * 2);
  }
};

/// An opened tile of a float format: as F32's packed one.
template <class F, ProductRule rule = F::kProduct>
struct Opened : Packed<F32> {
  static constexpr ProductRule kProduct = rule;
  static constexpr bool kInOrder = false;
  /// Opens a tile into `opened`; returns where it lies.
  static EIDER_ALWAYS_INLINE const std::byte* open(const std::byte* packed, std::int64_t columns,
                                                   std::byte* opened) {
    if constexpr (std::is_same_v<F, F32>) return packed;
    auto* to = reinterpret_cast<float*>(opened);
    const auto* from = reinterpret_cast<const typename F::Block*>(packed);
    for (std::int64_t i = 0; i < columns * kRowTile; i += kRowTile) {
      prefetch<true, Packed<F>::kColumnBytes>(from + i);
      for (std::int64_t row = i; row < i + kRowTile; row += kLanes)
        store(to + row, load_elements(from + row));
    }
    return opened;
  }
};

/// Where the parts of an opened unit lie.
template <class OpenedLayout>
struct OpenedPlanes {
  using Layout = OpenedLayout;
  static constexpr ProductRule kProduct = Layout::kProduct;
  static constexpr int kSubMinPairs = Layout::kSubMinPairs;
  static constexpr bool kInOrder = false;
  static constexpr std::int64_t kBytes = Layout::kBytes;
  static constexpr std::int64_t kStripBytes = Layout::kStripBytes;

  template <int group>
  static EIDER_ALWAYS_INLINE Codes codes(const std::byte* strip, std::int64_t row) {
    return load_codes(strip + group * kPlane + row * 4);
  }
  static EIDER_ALWAYS_INLINE Floats scale(const std::byte* unit, std::int64_t row) {
    return load(reinterpret_cast<const float*>(unit + Layout::kScale) + row);
  }
  /// Of the minimum, or of the second half of the columns.
  static EIDER_ALWAYS_INLINE Floats min_scale(const std::byte* unit, std::int64_t row) {
    return load(reinterpret_cast<const float*>(unit + Layout::kMinScale) + row);
  }
  static EIDER_ALWAYS_INLINE Ints sub_scale(const std::byte* unit, std::int64_t j, std::int64_t row) {
    return load_ints(unit + Layout::kSubScales + j * kPlane + row * 4);
  }
  static EIDER_ALWAYS_INLINE Ints min_pair(const std::byte* unit, std::int64_t pair, std::int64_t row) {
    return load_ints(unit + Layout::kMinPairs + pair * kPlane + row * 4);
  }
};

/// An opened tile of an integer format (packed.h).
template <class F>
struct OpenedIntegers : OpenedPlanes<OpenedLayout<F>> {
  using From = Packed<F>;
  using Layout = OpenedLayout<F>;
  using OpenedPlanes<Layout>::kBytes;
  using OpenedPlanes<Layout>::kStripBytes;
  static constexpr UnitKind kKind = From::kKind;
  static constexpr bool kSigned = From::kSigned;
  static constexpr bool kHasMin = F::kHasMin;
  static constexpr int kDotBits = From::kDotBits;
  static constexpr int kSubScaleCount = From::kSubScaleCount;
  static constexpr int kOffset = From::kOffset;

  static EIDER_ALWAYS_INLINE const std::byte* open(const std::byte* packed, std::int64_t columns,
                                                   std::byte* opened) {
    const std::int64_t units = columns / (kStripColumns * Layout::kStrips);
    for (std::int64_t unit = 0; unit < units; ++unit) {
      const std::byte* from = packed + unit * From::kBytes;
      prefetch<true, From::kBytes>(from);
      for (std::int64_t row = 0; row < kRowTile; row += kLanes)
        open_unit(from, row, opened + unit * kBytes + row * 4);
    }
    return opened;
  }

 private:
  /// `to`: the unit, at the rows' place in each plane.
  static EIDER_ALWAYS_INLINE void open_unit(const std::byte* unit, std::int64_t row, std::byte* to) {
    for (std::int64_t strip = 0; strip < Layout::kStrips; ++strip)
      unroll<8>([&](auto group) __attribute__((always_inline)) {
        store_codes(to + strip * kStripBytes + group * kPlane,
                    From::template codes<decltype(group)::value>(unit + strip * From::kStripBytes, row));
      });
    store(reinterpret_cast<float*>(to + Layout::kScale), From::scale(unit, row));
    if constexpr (F::kHasMin)
      store(reinterpret_cast<float*>(to + Layout::kMinScale), From::min_scale(unit, row));
    for (std::int64_t j = 0; j < PackedFormat<F>::kSubScales; ++j)
      if constexpr (Layout::kStrips > 1)
        store_ints(to + Layout::kSubScales + j * kPlane, From::sub_scale(unit, j, row));
    if constexpr (Layout::kStrips > 1 && F::kHasMin)
      for (std::int64_t pair = 0; pair < 4; ++pair)
        store_ints(to + Layout::kMinPairs + pair * kPlane, From::min_pair(unit, pair, row));
  }
};

template <class F>
struct Opened<F, ProductRule::kInteger32> : OpenedIntegers<F> {};
template <class F>
struct Opened<F, ProductRule::kInteger256> : OpenedIntegers<F> {};
