// Where products read a tile of weights from: as packed (packed.h), or opened: codes as bytes and scales as
// floats, so that several tokens share the work of taking them apart. Both answer the same questions.

/// Superblocks whose sub-blocks' sums fit 16 bits as they are: formats that are not tabled.
template <class F>
inline constexpr bool kPlainSuper = F::kProduct == ProductRule::kInteger256 && !PackedFormat<F>::kTabled;

/// What is added to an opened format's codes: what they were packed with in plain superblocks; nothing where
/// none is below 0; else kSignedOffset, or where products of small unsigned codes are cheaper, the least
/// power of two that leaves none below 0.
template <class F>
constexpr int opened_offset() {
  constexpr CodeRange kRange = code_range<F>();
  if (kPlainSuper<F>) return PackedFormat<F>::kOffset;
  if (kRange.least == 0) return 0;
  if (!kSmallCodesAreCheaper || kRange.largest > 63) return kSignedOffset;
  for (int offset = 16;; offset *= 2)
    if (kRange.least >= -offset && kRange.largest < offset) return offset;
}
template <class F>
inline constexpr int kOpenedOffset = opened_offset<F>();
/// Whether products take its codes as signed ones.
template <class F>
inline constexpr bool kOpenedSigned =
    !kPlainSuper<F> && code_range<F>().least < 0 && kOpenedOffset<F> == kSignedOffset;

/// How a unit is multiplied.
enum class UnitKind : std::uint8_t {
  kFloat,       // a chain of multiply-adds
  kFours,       // the same, 4 columns taken apart together
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

/// The codes of group `group` of a strip as they are stored, for the rows from `row` on.
template <class F, int group>
EIDER_ALWAYS_INLINE Codes stored_codes(const std::byte* strip, std::int64_t row) {
  constexpr int kBits = UnitLayout<F>::kBits;
  const std::byte* planes = strip + row * 4;
  const auto plane = [&](int index) __attribute__((always_inline)) {
    return load_codes(planes + index * kPlane);
  };
  if constexpr (kBits == 8) {
    return plane(group);
  } else if constexpr (kBits == 3 && group < 6) {
    return bits<group % 2 * 3, 7>(plane(group / 2));
  } else if constexpr (kBits == 3) {
    return bits<6, 3>(plane(group - 6)) | bits<group - 2, 4>(plane(2));
  } else {
    constexpr int kLow = UnitLayout<F>::kLowBits, kGroups = 8 / kLow;  // of a plane
    const Codes low = bits<group % kGroups * kLow, (1 << kLow) - 1>(plane(group / kGroups));
    if constexpr (kBits == 5) return low | bits<group - 4, 16>(plane(4));
    if constexpr (kBits == 6) return low | bits<group % 4 * 2 - 4, 48>(plane(4 + group / 4));
    return low;
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

/// Packed units of FP8. Values are times 2^-117, as opened ones and the table's inputs, or times 1 /
/// kSumFactor of that.
template <class F>
struct Packed<F, ProductRule::kScaledFloat> {
  static constexpr ProductRule kProduct = ProductRule::kScaledFloat;
  static constexpr UnitKind kKind = UnitKind::kFours;
  static constexpr bool kHasSigns = std::is_same_v<F, PackedAsFp9>;
  static constexpr std::int64_t kBytes = kHasSigns ? Fp8Layout::kFp9UnitBytes : Fp8Layout::kUnitBytes;
  static constexpr std::int64_t kCodes = kHasSigns ? kPlane : 0;
  static constexpr float kSumFactor = kHasSigns ? 1 : 8;

  /// Bit g: whether group g of unit `unit`, which lies at `at`, has values that are subnormal as take() has
  /// them.
  static EIDER_ALWAYS_INLINE unsigned subnormal_groups(const std::byte* at, std::int64_t unit) {
    return kHasSigns ? 0 : static_cast<unsigned>(at[-unit * kBytes - 1 - unit]);
  }

  struct NoSigns {};
  using Signs = std::conditional_t<kHasSigns, Codes, NoSigns>;

  /// The signs of the rows from `row` on, for take().
  static EIDER_ALWAYS_INLINE Signs signs(const std::byte* unit, std::int64_t row) {
    if constexpr (kHasSigns)
      return load_codes(unit + row * 4);
    else
      return {};
  }
  /// The values of the 4 columns of a group, for the rows from `row` on. Groups are taken in ascending order,
  /// each once.
  static EIDER_ALWAYS_INLINE void take(const std::byte* unit, std::int64_t group, std::int64_t row,
                                       Signs& signs, Floats (&values)[4]) {
    const Codes codes = load_codes(unit + kCodes + group * kPlane + row * 4);
    if constexpr (kHasSigns)
      fp9_values(codes, signs, values);
    else
      fp8_values(codes, values);
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
    const Codes stored = stored_codes<F, group>(strip, row);
    return kSigned ? prepare_signed(stored) : stored;
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

/// An opened unit of integers (packed.h), whatever the format. Codes, to which `offset` was added, have
/// `dot_bits` bits; 8: they are signed.
template <class OpenedLayout, UnitKind kind, int dot_bits, int offset>
struct OpenedIntegers {
  using Layout = OpenedLayout;
  static constexpr ProductRule kProduct = Layout::kProduct;
  static constexpr UnitKind kKind = kind;
  static constexpr int kDotBits = dot_bits;
  static constexpr bool kSigned = dot_bits == 8;
  static constexpr int kOffset = offset;
  static constexpr bool kHasMin = kind == UnitKind::kInteger32 && Layout::kTwoScales;
  static constexpr int kSubScaleCount = Layout::kSubScaleCount;
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

/// An opened unit of floats: as F32's packed one.
template <ProductRule rule>
struct OpenedFloats : Packed<F32> {
  static constexpr ProductRule kProduct = rule;
  static constexpr bool kInOrder = false;
};

template <class F>
constexpr auto opened_kind() {
  if constexpr (is_float_rule(F::kProduct)) {
    return OpenedFloats<F::kProduct>{};
  } else {
    constexpr bool kTabledSuper = F::kProduct == ProductRule::kInteger256 && PackedFormat<F>::kTabled;
    constexpr UnitKind kKind = kTabledSuper ? UnitKind::kSummed256 : kUnitKind<F::kProduct>;
    constexpr int kOffset = kOpenedOffset<F>;
    constexpr int kDotBits = kOpenedSigned<F> ? 8
                             : kPlainSuper<F> ? PackedFormat<F>::kBits
                             : kOffset <= 16  ? 5
                             : kOffset == 32  ? 6
                                              : 7;
    return OpenedIntegers<OpenedLayout<F>, kKind, kDotBits, kOffset>{};
  }
}
/// What units of a format become when they are opened: few kinds for many formats, which share their kernels.
template <class F>
using Opened = decltype(opened_kind<F>());
