// Products of tabled formats (packed.h). Each unit is opened when it is come to, in the first-level cache,
// and multiplied from there: what looks codes up in a table is all that the formats have for themselves, and
// one opening serves several tokens.

/// An opened unit, whatever the format; `offset` was added to its codes.
template <class OpenedLayout, int offset, bool is_signed>
struct Staged : OpenedPlanes<OpenedLayout> {
  static constexpr UnitKind kKind = OpenedLayout::kProduct == ProductRule::kInteger256
                                        ? UnitKind::kSummed256
                                        : kUnitKind<OpenedLayout::kProduct>;
  static constexpr bool kSigned = is_signed;
  static constexpr bool kHasMin = false;
  static constexpr int kDotBits = is_signed ? 8 : offset <= 16 ? 5 : offset == 32 ? 6 : 7;
  static constexpr int kOffset = offset;
};
template <class F>
using StagedFormat = Staged<OpenedLayout<F>, kTabledOffset<F>, kTabledSigned<F>>;

/// Where units of a tile come from.
struct TileUnits {
  const std::byte* units;   // packed; or opened, if `open` is null
  OpenUnits open;           // opens packed units
  std::int64_t unit_bytes;  // of one of them
};

/// Room for the units of 256 columns.
template <class Source>
class Stage {
 public:
  static constexpr std::int64_t kUnits = Source::kProduct == ProductRule::kInteger256 ? 1 : 8;

  /// Where units [first, first + count), count <= kUnits, lie opened.
  EIDER_ALWAYS_INLINE const std::byte* open(const TileUnits& from, std::int64_t first, std::int64_t count) {
    const std::byte* units = from.units + first * from.unit_bytes;
    if (from.open == nullptr) return units;
    from.open(units, count, opened_);
    return opened_;
  }

 private:
  alignas(64) std::byte opened_[kUnits * Source::kBytes];
};

/// Opens a whole tile into `opened`.
template <class Source>
EIDER_ALWAYS_INLINE TileUnits open_tile(const TileUnits& from, std::int64_t columns, std::byte* opened) {
  from.open(from.units, units_of<Source::kProduct>(columns), opened);
  return {opened, nullptr, Source::kBytes};
}
