#include "server/response_store.h"

#include <utility>

namespace eider::server {

void ResponseStore::put(const std::string& id, const std::string& scope, std::string messages) {
  const std::lock_guard lock(mutex_);
  entries_.push_front({id, scope, std::move(messages)});
  by_id_[id] = entries_.begin();
  bytes_ += entries_.front().bytes();
  while (bytes_ > most_bytes_ && !entries_.empty()) {
    bytes_ -= entries_.back().bytes();
    by_id_.erase(entries_.back().id);
    entries_.pop_back();
  }
}

std::optional<std::string> ResponseStore::get(const std::string& id, const std::string& scope) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->scope != scope) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->messages;
}

}  // namespace eider::server
