// Opening units (packed.h): places of tabled formats are looked up in the format's table, in registers.

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

/// Sub-minima 2 * pair and 2 * pair + 1, each of 16 bits.
template <class F>
EIDER_ALWAYS_INLINE Ints opened_min_pair(const std::byte* unit, std::int64_t pair, std::int64_t row) {
  if constexpr (kPlainSuper<F>) return Packed<F>::min_pair(unit, pair, row);
  const Ints both = load_unsigned_bytes(unit + UnitLayout<F>::kMins + pair * kRowTile + row);
  return nibbles<0>(both) + shift_left<16>(nibbles<1>(both));
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
    store_ints(to + To::kSubScales + j * kPlane, kPlainSuper<F> ? scale_words(scale)
                                                 : To::kNarrow  ? word_scale(scale)
                                                                : scale);
  });
  for (std::int64_t pair = 0; pair < To::kSubMinPairs; ++pair)
    store_ints(to + To::kMinPairs + pair * kPlane, opened_min_pair<F>(unit, pair, row));
}

/// What codes become when they are opened.
template <class F, bool tabled = PackedFormat<F>::kTabled>
class OpenedCodes {
 public:
  EIDER_ALWAYS_INLINE OpenedCodes()
      : table_(kOpenedSigned<F> ? prepare_signed(load_table(kTable.values)) : load_table(kTable.values)) {}
  EIDER_ALWAYS_INLINE Codes of(Codes places) const {
    return codes_are_places<F>() ? places : lookup(table_, places);
  }

 private:
  struct Table {
    std::int8_t values[16] = {};
    constexpr Table() {
      for (std::size_t i = 0; i < std::size(PackedFormat<F>::kValues); ++i)
        values[i] =
            static_cast<std::int8_t>(PackedFormat<F>::kValues[i] + (kOpenedSigned<F> ? 0 : kOpenedOffset<F>));
    }
  };
  static constexpr Table kTable{};

  Codes table_;
};
template <class F>
struct OpenedCodes<F, false> {
  static EIDER_ALWAYS_INLINE Codes of(Codes stored) {
    constexpr int kMore = kOpenedOffset<F> - PackedFormat<F>::kOffset;
    if constexpr (PackedFormat<F>::kBits == 8) return prepare_signed(stored);
    return kMore == 0 ? stored : add_to_bytes(stored, kMore);
  }
};

/// Opens integers of `columns` columns: units that lie one after the other.
template <class F>
inline void open_integers(const std::byte* packed, std::int64_t columns, std::byte* opened) {
  using Layout = UnitLayout<F>;
  using To = OpenedLayout<F>;
  const OpenedCodes<F> codes;
  const std::int64_t units = columns / kUnitColumns<F>;
  for (std::int64_t unit = 0; unit < units; ++unit, packed += Layout::kBytes, opened += To::kBytes) {
    for (std::int64_t strip = 0; strip < Layout::kStrips; ++strip) {
      const std::byte* from = packed + strip * Layout::kStripBytes;
      std::byte* to = opened + strip * To::kStripBytes;
      prefetch<true, Layout::kStripBytes>(from);
      for (std::int64_t row = 0; row < kRowTile; row += kLanes)
        unroll<8>([&](auto group) __attribute__((always_inline)) {
          store_codes(to + group * kPlane + row * 4,
                      codes.of(stored_codes<F, decltype(group)::value>(from, row)));
        });
    }
    prefetch<true, Layout::kBytes - Layout::kSubScales>(packed + Layout::kSubScales);
    for (std::int64_t row = 0; row < kRowTile; row += kLanes) open_scales<F>(packed, row, opened);
  }
}

/// Opens FP8 of `columns` columns: whole units. Its values are normal floats, which matters: each is
/// multiplied for every token, and CPUs may multiply subnormal ones by microcode.
template <class F>
inline void open_fp8(const std::byte* packed, std::int64_t columns, std::byte* opened) {
  using From = Packed<F>;
  auto* unit = reinterpret_cast<float*>(opened);
  for (; columns > 0; columns -= kStripColumns, packed += From::kBytes, unit += kStripColumns * kRowTile) {
    prefetch<true, From::kBytes>(packed);
    for (std::int64_t row = 0; row < kRowTile; row += kLanes) {
      typename From::Signs signs = From::signs(packed, row);
      for (std::int64_t group = 0; group < 8; ++group) {
        Floats values[4];
        From::take(packed, group, row, signs, values);
        unroll<4>([&](auto i) __attribute__((always_inline)) {
          const Floats value = From::kSumFactor == 1 ? values[i] : values[i] * splat(From::kSumFactor);
          store(unit + (group * 4 + i) * kRowTile + row, value);
        });
      }
    }
  }
}

/// Opens floats of `columns` columns.
template <class F>
inline void open_floats(const std::byte* packed, std::int64_t columns, std::byte* opened) {
  auto* to = reinterpret_cast<float*>(opened);
  for (; columns > 0; --columns, packed += Packed<F>::kColumnBytes, to += kRowTile) {
    prefetch<true, Packed<F>::kColumnBytes>(packed);
    for (std::int64_t row = 0; row < kRowTile; row += kLanes)
      store(to + row, Packed<F>::elements(packed, row));
  }
}
