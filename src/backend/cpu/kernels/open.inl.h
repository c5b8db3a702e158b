// Opening units of tabled formats (packed.h): codes are looked up in the format's table, in registers.

/// The places in the table of group `group` of a strip, for the rows from `row` on.
template <class F, int group>
EIDER_ALWAYS_INLINE Codes code_places(const std::byte* strip, std::int64_t row) {
  constexpr int kBits = UnitLayout<F>::kBits;
  const std::byte* planes = strip + row * 4;
  const auto plane = [&](int index) __attribute__((always_inline)) {
    return load_codes(planes + index * kPlane);
  };
  if constexpr (kBits != 3) {
    constexpr int kGroups = 8 / kBits;  // of a plane
    return bits<group % kGroups * kBits, (1 << kBits) - 1>(plane(group / kGroups));
  } else if constexpr (group < 6) {
    return bits<group % 2 * 3, 7>(plane(group / 2));
  } else {
    return bits<6, 3>(plane(group - 6)) | bits<group - 2, 4>(plane(2));
  }
}

/// The first (half = 0) or second of each lane's two numbers of 4 bits.
template <int half>
EIDER_ALWAYS_INLINE Ints nibbles(Ints pairs) {
  return half == 0 ? low_bits<4>(pairs) : shift_right<4>(pairs);
}

template <class F, int j>
EIDER_ALWAYS_INLINE Ints opened_sub_scale(const std::byte* unit, std::int64_t row) {
  using Layout = UnitLayout<F>;
  constexpr SubScales kForm = Layout::kSubScaleForm;
  const std::byte* from = unit + Layout::kSubScales + row;
  if constexpr (kForm == SubScales::kOnes) {
    return splat_int(1);
  } else if constexpr (kForm == SubScales::kBytes) {
    return load_signed_bytes(from + j * kRowTile);
  } else {
    const Ints s = nibbles<j % 2>(load_unsigned_bytes(from + j / 2 * kRowTile));
    return kForm == SubScales::kNibbles ? s : s + s + splat_int(1);
  }
}

/// Scale `index` of the unit.
template <class F, int index>
EIDER_ALWAYS_INLINE Floats opened_scale(const std::byte* unit, std::int64_t row) {
  using Packed = PackedFormat<F>;
  using Element = std::conditional_t<Packed::kWideScale, BF16::Block, F16::Block>;
  const auto* from = reinterpret_cast<const Element*>(unit + UnitLayout<F>::kScales) + index * kRowTile + row;
  const Floats scale = load_elements(from);
  return Packed::kScaleFactor == 1 ? scale : scale * splat(Packed::kScaleFactor);
}

/// The parts of a unit that are not codes.
template <class F>
EIDER_ALWAYS_INLINE void open_scales(const std::byte* unit, std::int64_t row, std::byte* opened) {
  using Layout = UnitLayout<F>;
  using To = OpenedLayout<F>;
  std::byte* to = opened + row * 4;
  store(reinterpret_cast<float*>(to + To::kScale), opened_scale<F, 0>(unit, row));
  if constexpr (Layout::kTwoScales)
    store(reinterpret_cast<float*>(to + To::kMinScale), opened_scale<F, 1>(unit, row));
  unroll<To::kSubScaleCount>([&](auto j) __attribute__((always_inline)) {
    const Ints scale = opened_sub_scale<F, decltype(j)::value>(unit, row);
    store_ints(to + To::kSubScales + j * kPlane, To::kNarrow ? word_scale(scale) : scale);
  });
  for (std::int64_t pair = 0; pair < To::kSubMinPairs; ++pair) {
    const Ints both = load_unsigned_bytes(unit + Layout::kMins + pair * kRowTile + row);
    store_ints(to + To::kMinPairs + pair * kPlane, nibbles<0>(both) + shift_left<16>(nibbles<1>(both)));
  }
}

/// Opens `units` units, which lie one after the other.
template <class F>
inline void open_units(const std::byte* packed, std::int64_t units, std::byte* opened) {
  using Layout = UnitLayout<F>;
  using To = OpenedLayout<F>;
  std::int8_t values[16] = {};
  for (std::size_t i = 0; i < std::size(PackedFormat<F>::kValues); ++i)
    values[i] =
        static_cast<std::int8_t>(PackedFormat<F>::kValues[i] + (kTabledSigned<F> ? 0 : kTabledOffset<F>));
  const Codes table = kTabledSigned<F> ? prepare_signed(load_table(values)) : load_table(values);
  for (std::int64_t unit = 0; unit < units; ++unit, packed += Layout::kBytes, opened += To::kBytes) {
    for (std::int64_t strip = 0; strip < Layout::kStrips; ++strip) {
      const std::byte* from = packed + strip * Layout::kStripBytes;
      std::byte* to = opened + strip * To::kStripBytes;
      prefetch<true, Layout::kStripBytes>(from);
      for (std::int64_t row = 0; row < kRowTile; row += kLanes)
        unroll<8>([&](auto group) __attribute__((always_inline)) {
          const Codes places = code_places<F, decltype(group)::value>(from, row);
          store_codes(to + group * kPlane + row * 4, codes_are_places<F>() ? places : lookup(table, places));
        });
    }
    prefetch<true, Layout::kBytes - Layout::kSubScales>(packed + Layout::kSubScales);
    for (std::int64_t row = 0; row < kRowTile; row += kLanes) open_scales<F>(packed, row, opened);
  }
}
