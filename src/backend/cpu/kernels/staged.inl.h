// Reading units of a tile opened. Several tokens share the work of taking a unit apart: it is opened when it
// is come to, in the first-level cache, and multiplied from there. What looks codes up or shifts them is all
// that formats have for themselves (open.inl.h).

/// Bytes of a packed unit.
template <class F>
constexpr std::int64_t unit_bytes() {
  if constexpr (is_float_rule(F::kProduct))
    return Packed<F>::kBytes;
  else
    return UnitLayout<F>::kBytes;
}

/// Where units of a tile come from.
struct TileUnits {
  const std::byte* units;   // packed; or opened, if `open` is null
  OpenUnits open;           // opens packed units
  std::int64_t unit_bytes;  // of one of them
};

/// Those of the packed tile of `matrix` at `packed`.
template <class F>
EIDER_ALWAYS_INLINE TileUnits packed_units(const std::byte* packed, const Matrix& matrix) {
  constexpr Fp8Form kForm = std::is_same_v<F, PackedAsFp9> ? Fp8Form::kFp9 : Fp8Form::kFp8;
  const std::byte* units = units_of_tile<F::kProduct>(packed, matrix);
  if constexpr (std::is_same_v<F, F32>)  // is opened
    return {units, nullptr, unit_bytes<F>()};
  else
    return {units, opener(F::kFormat, kForm), unit_bytes<F>()};
}

/// Room for some opened units: 8 to 9 KiB.
template <class Source>
class Stage {
 public:
  static constexpr std::int64_t kUnits = Source::kProduct == ProductRule::kInteger256 ? 1
                                         : is_float_rule(Source::kProduct)            ? 2
                                                                                      : 4;

  /// Where units [first, first + kUnits), as far as the tile's `columns` go, lie opened.
  EIDER_ALWAYS_INLINE const std::byte* open(const TileUnits& from, std::int64_t first, std::int64_t columns) {
    const std::byte* units = from.units + first * from.unit_bytes;
    if (from.open == nullptr) return units;
    constexpr std::int64_t kUnitColumns = Source::kProduct == ProductRule::kInteger256 ? 256 : 32;
    const std::int64_t left = columns - first * kUnitColumns;
    from.open(units, left < kUnits * kUnitColumns ? left : kUnits * kUnitColumns, opened_);
    return opened_;
  }

 private:
  alignas(64) std::byte opened_[kUnits * Source::kBytes];
};

/// A whole tile, opened into `opened` where it is not.
template <class Source>
EIDER_ALWAYS_INLINE TileUnits open_tile(const TileUnits& from, std::int64_t columns, std::byte* opened) {
  if (from.open == nullptr) return from;
  from.open(from.units, columns, opened);
  return {opened, nullptr, Source::kBytes};
}
