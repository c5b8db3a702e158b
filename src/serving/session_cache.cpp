#include "serving/session_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace eider::serving {
namespace {

// A saved session is read when it saves computing so many tokens.
constexpr std::int64_t kWorthLoading = 32;
// Prompt ends that a conversation can go back to in models with sliding windows.
constexpr std::int64_t kPromptEnds = 16;

}  // namespace

SessionCache::Match SessionCache::find(const ScopeHash& scope, std::span<const TokenId> prompt,
                                       std::span<const LiveSession> live) {
  Match best;
  const auto consider = [&](const ScopeHash& owner, const Session& session) {
    if (owner != scope) return false;
    const std::int64_t common = common_prefix(session.tokens(), prompt);
    if (common <= best.length) return false;
    const std::int64_t length = session.resumable(common);
    if (length <= best.length) return false;
    best = {length, &session, std::nullopt};
    return true;
  };
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (consider(entry->scope, entry->session)) best.entry = entry;
  }
  for (const LiveSession& other : live) consider(*other.scope, *other.session);
  return best;
}

Session SessionCache::take(const ScopeHash& scope, std::span<const TokenId> prompt,
                           std::span<const LiveSession> live) {
  const Match match = find(scope, prompt, live);
  if (match.length == 0) {
    Session session = engine_.new_session();
    session.keep_prompt_ends(kPromptEnds);
    return session;
  }
  if (!match.entry) return match.session->fork(match.length);
  Entry& entry = **match.entry;
  // A conversation that goes on takes its session along; one that parts from it leaves it to others.
  if (match.length == entry.session.length() && !entry.saving) {
    Session session = std::move(entry.session);
    entries_.erase(*match.entry);
    return session;
  }
  entries_.splice(entries_.end(), entries_, *match.entry);
  return entry.session.fork(match.length);
}

SessionCache::Loading SessionCache::load(const ScopeHash& scope, std::span<const TokenId> prompt,
                                         std::span<const LiveSession> live, std::function<void()> done) {
  if (!disk_) return Loading::kNone;
  const std::int64_t saved = disk_->longest_match(scope, prompt);
  if (saved < find(scope, prompt, live).length + kWorthLoading) return Loading::kNone;
  const auto loaded = [this, scope, done = std::move(done)](std::optional<Session> session) {
    if (session) {
      ++loaded_;
      keep(scope, std::move(*session));
    }
    done();
  };
  for (;;) {
    Session session = engine_.new_session();
    session.keep_prompt_ends(kPromptEnds);
    if (disk_->load(scope, prompt, std::move(session), loaded).ok()) return Loading::kBegun;
    const Room room = make_room();
    if (room != Room::kMade) return room == Room::kComing ? Loading::kLater : Loading::kNone;
  }
}

void SessionCache::keep(const ScopeHash& scope, Session session) {
  if (session.length() == 0) return;
  // What it goes on from is not needed any more.
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool superseded =
        entry->scope == scope && !entry->saving &&
        common_prefix(entry->session.tokens(), session.tokens()) == entry->session.length() &&
        session.resumable(entry->session.length()) == entry->session.length();
    entry = superseded ? entries_.erase(entry) : std::next(entry);
  }
  entries_.push_back({scope, std::move(session)});
}

SessionCache::Room SessionCache::make_room() {
  const auto droppable = std::ranges::find_if(
      entries_, [this](const Entry& entry) { return !entry.saving && (entry.on_disk || !disk_); });
  if (droppable != entries_.end()) {
    if (!droppable->on_disk) ++dropped_;
    entries_.erase(droppable);
    return Room::kMade;
  }
  if (entries_.empty()) return disk_ && disk_->busy() ? Room::kComing : Room::kNone;
  save_least_recently_used();
  return Room::kComing;
}

void SessionCache::save_ahead() {
  const KvPool& pool = engine_.kv_pool();
  const std::int64_t limit = pool.limit_bytes();
  if (!disk_ || disk_->busy() || pool.bytes_in_use() < limit - limit / 4) return;
  // One that can be dropped at once is enough: to write each conversation after each turn would wear the
  // disk.
  if (std::ranges::none_of(entries_, &Entry::on_disk)) save_least_recently_used();
}

void SessionCache::save_all() {
  if (!disk_) return;
  run_completions();
  while (save_least_recently_used()) disk_->finish();
  disk_->finish();
}

// False where all are saved or being saved.
bool SessionCache::save_least_recently_used() {
  const auto entry = std::ranges::find_if(entries_, [](const Entry& e) { return !e.saving && !e.on_disk; });
  if (entry == entries_.end()) return false;
  save(entry);
  return true;
}

void SessionCache::save(Entries::iterator entry) {
  entry->saving = true;
  disk_->save(entry->scope, entry->session, [this, entry](bool saved) {
    entry->saving = false;
    entry->on_disk = true;
    ++(saved ? saved_ : dropped_);
  });
}

void SessionCache::run_completions() {
  if (disk_) disk_->run_completions();
}

SessionCache::Stats SessionCache::stats() const {
  Stats stats;
  stats.sessions = static_cast<std::int64_t>(entries_.size());
  stats.dropped = dropped_;
  stats.saved = saved_;
  stats.loaded = loaded_;
  if (disk_) {
    stats.on_disk = disk_->sessions();
    stats.disk_bytes = disk_->bytes();
    stats.damaged_files = disk_->damaged_files();
  }
  return stats;
}

}  // namespace eider::serving
