#include "weights/prepared_file.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"

namespace eider {
namespace {

/// Bytes between two looks at whether to go on.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

/// prepared_checksum() of bytes that come in pieces.
class Checksum {
 public:
  Checksum() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

/// Calls visit(offset, bytes) for pieces of `bytes` until it returns false; whether it never did.
template <class Visit>
bool visit_pieces(std::int64_t bytes, Visit visit) {
  for (std::int64_t offset = 0; offset < bytes; offset += static_cast<std::int64_t>(kPieceBytes))
    if (!visit(offset, std::min(static_cast<std::size_t>(bytes - offset), kPieceBytes))) return false;
  return true;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

Result<PreparedFile> PreparedFile::open(const std::string& path, File::Mode mode) {
  EIDER_TRY(File file, File::open(path, mode));
  return read(std::move(file));
}

Result<PreparedFile> PreparedFile::read(File file) {
  const std::int64_t size = file.size();
  std::vector<std::byte> start(static_cast<std::size_t>(std::min(size, PreparedIndex::kHeaderBytes)));
  EIDER_TRY_STATUS(file.read(0, start));
  EIDER_TRY(const std::int64_t start_bytes, PreparedIndex::start_bytes(start).context(file.path()));
  start.resize(static_cast<std::size_t>(std::min(size, start_bytes)));
  EIDER_TRY_STATUS(file.read(0, start));
  EIDER_TRY(PreparedIndex index, PreparedIndex::parse(start).context(file.path()));
  PreparedFile prepared(std::move(file), std::move(index));
  EIDER_TRY_STATUS(prepared.read_records());
  return prepared;
}

Status PreparedFile::read_records() {
  const std::int64_t size = file_.size();
  if (size < index_.data_offset() || size > index_.file_bytes())
    return error("{}: has {} bytes, not {}", path(), size, index_.file_bytes());
  const std::int64_t begin = index_.record_offset(0);
  std::vector<std::byte> bytes(static_cast<std::size_t>(index_.data_offset() - begin));
  EIDER_TRY_STATUS(file_.read(begin, bytes));
  const auto at = [&](std::int64_t offset) {
    return std::span(bytes).subspan(static_cast<std::size_t>(offset - begin));
  };
  if (!all_zero(at(index_.records_end())))
    return error("{}: bytes between its records and its data are damaged", path());

  for (std::size_t i = 0; i < index_.sections().size(); ++i) {
    const auto record_bytes =
        at(index_.record_offset(i)).first(static_cast<std::size_t>(index_.record_bytes(i)));
    std::vector<std::uint64_t> record(index_.sections()[i].count + 1);
    std::copy(record_bytes.begin(), record_bytes.end(), std::as_writable_bytes(std::span(record)).begin());
    const PreparedSection& section = index_.sections()[i];
    const bool cut_off = index_.data_offset() + section.offset + section.bytes > size;
    if (all_zero(record_bytes))
      states_.push_back(State::kMissing);
    else
      states_.push_back(index_.is_record(i, record) && !cut_off ? State::kFinished : State::kDamaged);
    records_.push_back(std::move(record));
  }
  return {};
}

Result<std::optional<PreparedFile>> PreparedFile::open_to_write(const std::string& path,
                                                                const PreparedIndex& index) {
  for (;;) {
    EIDER_TRY(File file, File::open(path, File::Mode::kCreate));
    if (!file.try_lock()) return std::optional<PreparedFile>();
    if (!file.is_current()) continue;  // whoever had the lock put another file in its place

    const bool is_new = file.size() == 0;
    if (!is_new) {
      EIDER_TRY(File again, File::open(path, File::Mode::kUpdate));  // read() takes the file along
      Result<PreparedFile> kept = read(std::move(again));
      if (kept.ok() && kept->index_.fits(index)) {
        kept->file_ = std::move(file);
        EIDER_TRY_STATUS(kept->file_.reserve(kept->index_.file_bytes()));
        for (std::size_t i = 0; i < kept->states_.size(); ++i)
          if (kept->states_[i] == State::kDamaged) EIDER_TRY_STATUS(kept->discard(i));
        return std::optional(std::move(kept).value());
      }
      // Not in place: another process may be reading it.
      if (::unlink(path.c_str()) != 0) return error("{}: cannot replace this file, which is damaged", path);
      continue;
    }
    Result<PreparedFile> begun = begin(std::move(file), index);
    if (begun.ok()) return std::optional(std::move(begun).value());
    ::unlink(path.c_str());
    return std::move(begun).error();
  }
}

Result<PreparedFile> PreparedFile::begin(File file, const PreparedIndex& index) {
  PreparedFile prepared(std::move(file), index);
  EIDER_TRY_STATUS(prepared.file_.reserve(index.file_bytes()));
  EIDER_TRY_STATUS(prepared.file_.write(0, std::as_bytes(std::span(index.start()))));
  EIDER_TRY_STATUS(prepared.file_.sync());
  EIDER_TRY_STATUS(prepared.read_records());
  return prepared;
}

std::size_t PreparedFile::finished() const {
  return static_cast<std::size_t>(std::ranges::count(states_, State::kFinished));
}

std::optional<bool> PreparedFile::check(std::size_t section, std::span<const std::byte> data,
                                        const std::function<bool()>& goes_on) const {
  EIDER_CHECK(states_[section] == State::kFinished);
  const PreparedSection& place = index_.sections()[section];
  for (std::size_t i = 0; i < place.count; ++i) {
    const std::size_t tensor = place.first + i;
    const auto begin = static_cast<std::size_t>(index_.offset(tensor) - place.offset);
    Checksum checksum;
    const bool whole = visit_pieces(index_.extent(tensor), [&](std::int64_t at, std::size_t bytes) {
      if (!goes_on()) return false;
      checksum.add(data.subspan(begin + static_cast<std::size_t>(at), bytes));
      return true;
    });
    if (!whole) return std::nullopt;
    if (checksum.value() != records_[section][i + 1]) return false;
  }
  return true;
}

Result<bool> PreparedFile::check_on_disk(std::size_t section, const PreparedProgress& progress) const {
  EIDER_CHECK(states_[section] == State::kFinished);
  const PreparedSection& place = index_.sections()[section];
  std::vector<std::byte> piece(std::min(kPieceBytes, static_cast<std::size_t>(place.bytes)));
  for (std::size_t i = 0; i < place.count; ++i) {
    const std::size_t tensor = place.first + i;
    Checksum checksum;
    Status status;
    visit_pieces(index_.extent(tensor), [&](std::int64_t at, std::size_t bytes) {
      const std::int64_t offset = index_.offset(tensor) + at;
      status = file_.read(index_.data_offset() + offset, std::span(piece).first(bytes));
      checksum.add(std::span(piece).first(bytes));
      if (status.ok() && progress &&
          !progress(offset + static_cast<std::int64_t>(bytes), index_.data_bytes()))
        status = error("interrupted");
      return status.ok();
    });
    EIDER_TRY_STATUS(status);
    if (checksum.value() != records_[section][i + 1]) return false;
  }
  return true;
}

Status PreparedFile::write(std::size_t section, std::span<const std::byte> data,
                           const PreparedProgress& progress) {
  const PreparedSection& place = index_.sections()[section];
  EIDER_CHECK_EQ(static_cast<std::int64_t>(data.size()), place.bytes);
  std::vector<std::uint64_t> checksums;
  for (std::size_t i = 0; i < place.count; ++i) {
    const std::size_t tensor = place.first + i;
    const auto begin = static_cast<std::size_t>(index_.offset(tensor) - place.offset);
    checksums.push_back(
        prepared_checksum(data.subspan(begin, static_cast<std::size_t>(index_.extent(tensor)))));
  }
  Status status;
  visit_pieces(place.bytes, [&](std::int64_t at, std::size_t bytes) {
    status = file_.write(index_.data_offset() + place.offset + at,
                         data.subspan(static_cast<std::size_t>(at), bytes));
    if (status.ok() && progress && !progress(at + static_cast<std::int64_t>(bytes), place.bytes))
      status = error("interrupted");
    return status.ok();
  });
  EIDER_TRY_STATUS(status);
  EIDER_TRY_STATUS(file_.sync());
  std::vector<std::uint64_t> record = index_.make_record(section, std::move(checksums));
  EIDER_TRY_STATUS(file_.write(index_.record_offset(section), std::as_bytes(std::span(record))));
  EIDER_TRY_STATUS(file_.sync());
  records_[section] = std::move(record);
  states_[section] = State::kFinished;
  return {};
}

void PreparedFile::remove() {
  ::unlink(path().c_str());
}

Status PreparedFile::discard(std::size_t section) {
  std::ranges::fill(records_[section], 0);
  states_[section] = State::kMissing;
  EIDER_TRY_STATUS(file_.write(index_.record_offset(section), std::as_bytes(std::span(records_[section]))));
  return file_.sync();
}

}  // namespace eider
