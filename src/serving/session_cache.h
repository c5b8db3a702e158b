// SessionCache: the sessions of ended answers, so that a prompt that begins as one of them is computed from
// where they part. What memory has no room for goes to disk. Only the thread that runs steps uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/engine.h"
#include "serving/session_disk.h"

namespace eider::serving {

/// A session that is in use: it can be forked, between steps.
struct LiveSession {
  const ScopeHash* scope = nullptr;
  const Session* session = nullptr;
};

class SessionCache {
 public:
  /// `disk` may be null.
  SessionCache(Engine& engine, std::unique_ptr<SessionDisk> disk) : engine_(engine), disk_(std::move(disk)) {}

  /// A session of the scope's that holds as much of `prompt` as one in memory does; an empty one where none
  /// does. `live` are looked at too. Whoever needs the prompt's last logits asks without its last token.
  Session take(const ScopeHash& scope, std::span<const TokenId> prompt, std::span<const LiveSession> live);
  enum class Loading : std::uint8_t {
    kBegun,  ///< done() follows, after which take() finds it, or nothing where the file was damaged
    kLater,  ///< to be asked again, once the disk has done what makes room for it
    kNone    ///< take() gives what there is
  };
  /// Begins to read a saved session where one holds clearly more of `prompt` than memory, into blocks that
  /// others give up for it.
  Loading load(const ScopeHash& scope, std::span<const TokenId> prompt, std::span<const LiveSession> live,
               std::function<void()> done);
  /// Remembers a session that is no more in use.
  void keep(const ScopeHash& scope, Session session);

  enum class Room : std::uint8_t {
    kMade,    ///< some blocks may be free now
    kComing,  ///< once the disk has done what it was asked
    kNone     ///< nothing is remembered any more
  };
  /// Forgets what was used least recently, or begins to move it to disk.
  Room make_room();
  /// Moves what was used least recently to disk while memory is nearly full, so that make_room() need not
  /// wait.
  void save_ahead();
  /// Saves all that is remembered, as far as the disk's budget reaches, and waits for it.
  void save_all();

  void run_completions();

  struct Stats {
    std::int64_t sessions = 0, dropped = 0, saved = 0, loaded = 0;
    std::int64_t on_disk = 0, disk_bytes = 0, damaged_files = 0;
  };
  Stats stats() const;

 private:
  struct Entry {
    ScopeHash scope;
    Session session;
    bool on_disk = false;  ///< or the disk did not want it: it can be dropped
    bool saving = false;   ///< must stay as it is
  };
  using Entries = std::list<Entry>;  // what was used last is last; work on the disk refers to entries
  struct Match {
    std::int64_t length = 0;
    const Session* session = nullptr;
    std::optional<Entries::iterator> entry;  // nothing: a live session's
  };

  Match find(const ScopeHash& scope, std::span<const TokenId> prompt, std::span<const LiveSession> live);
  void save(Entries::iterator entry);
  bool save_least_recently_used();

  Engine& engine_;
  Entries entries_;
  std::int64_t dropped_ = 0, saved_ = 0, loaded_ = 0;
  std::unique_ptr<SessionDisk> disk_;  // last: its work refers to the entries
};

}  // namespace eider::serving
