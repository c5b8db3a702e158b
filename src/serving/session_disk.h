// SessionDisk: the directory of saved sessions and its budget. Files are read and written on a thread of its
// own; everything else belongs to the thread that runs steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/token_id.h"
#include "runtime/session.h"
#include "serving/io_thread.h"
#include "serving/session_file.h"

namespace eider::serving {

/// Where sessions go that memory has no room for.
struct DiskBudget {
  std::string directory;   ///< made where it is not there; one process at a time uses it
  std::int64_t bytes = 0;  ///< most that all session files in it take
};

/// How many tokens two sequences begin with alike.
inline std::int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

class SessionDisk {
 public:
  using Log = std::function<void(const std::string& line)>;

  /// Looks at the files that are there: what is damaged is removed with a log line each, what belongs to
  /// another model stays as long as the budget has room. `wake`: called on the disk's thread when
  /// run_completions() has something to do. Fails where the directory cannot be used.
  static Result<std::unique_ptr<SessionDisk>> open(const DiskBudget& budget, SessionFormat format, Log log,
                                                   std::function<void()> wake);

  /// How much of `prompt` a load would give at best.
  std::int64_t longest_match(const ScopeHash& scope, std::span<const TokenId> prompt) const;
  /// Reads that much into blocks of `session`, an empty one, whose restore() fails where memory is short.
  /// done(session) follows when it is ready to use, done(nothing) where the file turned out to be damaged
  /// (it is removed, with a log line).
  Status load(const ScopeHash& scope, std::span<const TokenId> prompt, Session session,
              std::function<void(std::optional<Session>)> done);

  /// Writes a session, after removing what was used least recently for it. It must stay as it is until
  /// done(whether it was saved); a log line says why not.
  void save(const ScopeHash& scope, const Session& session, std::function<void(bool)> done);

  void run_completions() { io_.run_completions(); }
  /// Waits for all that was begun.
  void finish() { io_.finish(); }
  bool busy() const { return io_.busy(); }

  std::int64_t sessions() const;
  std::int64_t bytes() const { return bytes_; }
  std::int64_t damaged_files() const { return damaged_files_; }

 private:
  /// A file.
  struct Entry {
    std::string name;
    std::int64_t bytes = 0;
    std::int64_t last_used = 0;                 ///< file time in ns
    std::shared_ptr<const SessionIndex> index;  ///< null: of another model
  };
  /// What of an entry a prompt can use.
  struct Match {
    std::int64_t length = 0;
    std::size_t entry = 0;
  };

  SessionDisk(DiskBudget budget, SessionFormat format, File lock, Log log, std::function<void()> wake);
  void scan();
  void scan_file(const std::string& name);
  std::string path_of(const std::string& name) const { return budget_.directory + "/" + name; }
  Match find(const ScopeHash& scope, std::span<const TokenId> prompt) const;
  bool make_room(std::int64_t bytes);
  void add(Entry entry);
  void remove(std::size_t entry);
  void discard(const std::string& name, const std::string& problem);

  DiskBudget budget_;
  SessionFormat format_;
  File lock_;
  Log log_;
  std::vector<Entry> entries_;
  std::int64_t bytes_ = 0;
  std::int64_t damaged_files_ = 0;
  IoThread io_;  // last: its work uses the others
};

}  // namespace eider::serving
