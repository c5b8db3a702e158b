#include "serving/session_disk.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace eider::serving {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".eiderkv";

std::int64_t file_time_ns(const fs::file_time_type& time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::int64_t now_ns() {
  return file_time_ns(fs::file_time_type::clock::now());
}

// "f00f....eiderkv" and "f00f....eiderkv.partial-123" (NewFile) are ours; nothing else is touched.
bool is_ours(const std::string& name) {
  const std::size_t extension = name.find(kExtension);
  const std::size_t digits = name.find_first_not_of("0123456789abcdef");
  return digits == 16 && name[16] == '-' && extension == 49 &&
         name.find_first_not_of("0123456789abcdef", 17) == extension;
}

}  // namespace

Result<std::unique_ptr<SessionDisk>> SessionDisk::open(const DiskBudget& budget, SessionFormat format,
                                                       Log log, std::function<void()> wake) {
  if (budget.bytes <= 0)
    return error("{}: a budget of {} bytes holds no session", budget.directory, budget.bytes);
  std::error_code failure;
  fs::create_directories(budget.directory, failure);
  // Saved sessions are what people said.
  if (!failure) fs::permissions(budget.directory, fs::perms::owner_all, failure);
  if (failure) return error("{}: cannot make the directory: {}", budget.directory, failure.message());
  EIDER_TRY(File lock, File::open(budget.directory + "/lock", File::Mode::kCreate));
  if (!lock.try_lock()) return error("{}: another process keeps its sessions there", budget.directory);
  std::unique_ptr<SessionDisk> disk(
      new SessionDisk(budget, std::move(format), std::move(lock), std::move(log), std::move(wake)));
  disk->scan();
  return disk;
}

SessionDisk::SessionDisk(DiskBudget budget, SessionFormat format, File lock, Log log,
                         std::function<void()> wake)
    : budget_(std::move(budget)),
      format_(std::move(format)),
      lock_(std::move(lock)),
      log_(std::move(log)),
      io_(std::move(wake)) {}

void SessionDisk::scan() {
  std::error_code failure;
  std::vector<std::string> names;
  for (fs::directory_iterator file(budget_.directory, failure), end; !failure && file != end;
       file.increment(failure)) {
    if (is_ours(file->path().filename())) names.push_back(file->path().filename());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) scan_file(name);
  make_room(0);
}

void SessionDisk::scan_file(const std::string& name) {
  const std::string path = path_of(name);
  std::error_code failure;
  if (!name.ends_with(kExtension)) {  // a write that was not finished
    fs::remove(path, failure);
    return;
  }
  Entry entry{name, 0, 0, nullptr};
  entry.last_used = file_time_ns(fs::last_write_time(path, failure));
  entry.bytes = static_cast<std::int64_t>(fs::file_size(path, failure));
  if (failure) return discard(name, failure.message());
  if (name.starts_with(format_.name_prefix())) {
    auto file = File::open(path, File::Mode::kRead);
    if (!file.ok()) return discard(name, file.error().message());
    auto index = format_.read_index(*file);
    if (!index.ok()) return discard(name, index.error().message());
    if (format_.file_name(*index) != name) return discard(name, "is not what its name says");
    entry.index = std::make_shared<const SessionIndex>(std::move(*index));
  }
  add(std::move(entry));
}

std::int64_t SessionDisk::longest_match(const ScopeHash& scope, std::span<const TokenId> prompt) const {
  return find(scope, prompt).length;
}

SessionDisk::Match SessionDisk::find(const ScopeHash& scope, std::span<const TokenId> prompt) const {
  Match best;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const SessionIndex* index = entries_[i].index.get();
    if (index == nullptr || index->scope != scope) continue;
    const std::int64_t common = common_prefix(index->tokens, prompt);
    if (common <= best.length) continue;
    const std::int64_t length =
        resumable_length(format_.kinds(), common, [&](BlockPlace place) { return index->has(place); });
    if (length > best.length) best = {length, i};
  }
  return best;
}

Status SessionDisk::load(const ScopeHash& scope, std::span<const TokenId> prompt, Session session,
                         std::function<void(std::optional<Session>)> done) {
  const Match match = find(scope, prompt);
  if (match.length == 0) return error("no saved session begins as the prompt does");
  Entry& entry = entries_[match.entry];
  const std::shared_ptr<const SessionIndex> index = entry.index;
  const std::int64_t held = blocks_for(match.length);

  std::vector<std::size_t> wanted;
  std::vector<BlockPlace> places;
  for (std::size_t i = 0; i < index->blocks.size(); ++i) {
    if (index->blocks[i].place.index >= held) continue;
    wanted.push_back(i);
    places.push_back(index->blocks[i].place);
  }
  std::vector<std::int64_t> prompt_ends = index->prompt_ends;
  std::erase_if(prompt_ends, [&](std::int64_t end) { return end > match.length; });
  EIDER_TRY_STATUS(session.restore(std::span(index->tokens).first(static_cast<std::size_t>(match.length)),
                                   prompt_ends, places));

  entry.last_used = now_ns();
  std::vector<std::span<std::byte>> memory;
  for (const BlockPlace& place : places)
    memory.push_back({session.block(place), static_cast<std::size_t>(format_.block_bytes(place.kind))});
  const auto read = [this, index, wanted, memory](const std::string& path) -> Status {
    EIDER_TRY(const File file, File::open(path, File::Mode::kRead));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EIDER_TRY_STATUS(format_.read_block(file, *index, wanted[i], memory[i]));
    std::error_code ignored;
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return {};
  };
  // A function object is copied, a session is not; only the owner's thread lets go of it.
  const auto loaded = std::make_shared<Session>(std::move(session));
  io_.post([this, read, loaded, name = entry.name, done = std::move(done)]() -> IoThread::Completion {
    const Status status = read(path_of(name));
    return [this, status, loaded, name, done] {
      Session filled = std::move(*loaded);  // let go of here, whatever follows
      if (status.ok()) return done(std::move(filled));
      const auto gone = std::ranges::find(entries_, name, &Entry::name);
      if (gone != entries_.end()) {
        bytes_ -= gone->bytes;
        entries_.erase(gone);
        discard(name, status.error().message());
      }
      done(std::nullopt);
    };
  });
  return {};
}

void SessionDisk::save(const ScopeHash& scope, const Session& session, std::function<void(bool)> done) {
  const auto index = std::make_shared<SessionIndex>();
  index->scope = scope;
  index->tokens.assign(session.tokens().begin(), session.tokens().end());
  index->prompt_ends.assign(session.prompt_ends().begin(), session.prompt_ends().end());
  std::vector<const std::byte*> data;
  for (const BlockPlace& place : session.held_blocks()) {
    index->blocks.push_back({place, 0});
    data.push_back(session.block(place));
  }
  const std::int64_t bytes = format_.file_bytes(*index);
  const std::string name = format_.file_name(*index);
  if (find(scope, index->tokens).length == session.length()) {  // is there already
    io_.post([done] { return [done] { done(true); }; });
    return;
  }
  // What this one goes on from is not needed any more.
  for (std::size_t i = entries_.size(); i-- > 0;) {
    const SessionIndex* other = entries_[i].index.get();
    if (other != nullptr && other->scope == scope &&
        common_prefix(other->tokens, index->tokens) == static_cast<std::int64_t>(other->tokens.size()))
      remove(i);
  }
  if (!make_room(bytes)) {
    io_.post([done] { return [done] { done(false); }; });
    return;
  }
  bytes_ += bytes;  // from here on, so that the next one does not count on that room
  io_.post([this, index, data, bytes, name, done = std::move(done)]() -> IoThread::Completion {
    const Status status = format_.write(path_of(name), *index, data);
    return [this, status, index, bytes, name, done] {
      bytes_ -= bytes;
      if (status.ok())
        add({name, bytes, now_ns(), index});
      else
        log_(fmt::format("{}: a session could not be saved: {}", path_of(name), status.error().message()));
      done(status.ok());
    };
  });
}

std::int64_t SessionDisk::sessions() const {
  return std::ranges::count_if(entries_, [](const Entry& entry) { return entry.index != nullptr; });
}

// Removes what was used least recently until `bytes` more fit the budget; false where they never do.
bool SessionDisk::make_room(std::int64_t bytes) {
  if (bytes > budget_.bytes) return false;
  while (bytes_ > budget_.bytes - bytes) {
    if (entries_.empty()) return false;  // what is being written takes the rest
    remove(static_cast<std::size_t>(std::ranges::min_element(entries_, {}, &Entry::last_used) -
                                    entries_.begin()));
  }
  return true;
}

void SessionDisk::add(Entry entry) {
  bytes_ += entry.bytes;
  entries_.push_back(std::move(entry));
}

void SessionDisk::remove(std::size_t entry) {
  bytes_ -= entries_[entry].bytes;
  io_.post([path = path_of(entries_[entry].name)]() -> IoThread::Completion {
    std::error_code ignored;
    fs::remove(path, ignored);
    return {};
  });
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(entry));
}

void SessionDisk::discard(const std::string& name, const std::string& problem) {
  ++damaged_files_;
  log_(fmt::format("{}: a saved session is removed: it {}", path_of(name), problem));
  std::error_code ignored;
  fs::remove(path_of(name), ignored);
}

}  // namespace eider::serving
