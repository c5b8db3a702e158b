// ResponseStore: conversations that /v1/responses may be asked to go on with, by the id of their last
// response. Kept in memory, the ones used least recently go first.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace eider::server {

/// May be used from any thread.
class ResponseStore {
 public:
  explicit ResponseStore(std::size_t most_bytes = std::size_t{64} << 20) : most_bytes_(most_bytes) {}

  /// Keeps the messages, as JSON text, that a conversation of `scope` came to with response `id`.
  void put(const std::string& id, const std::string& scope, std::string messages);
  /// Nothing where it is unknown, forgotten, or of another scope.
  std::optional<std::string> get(const std::string& id, const std::string& scope);

 private:
  struct Entry {
    std::string id, scope, messages;
    std::size_t bytes() const { return id.size() + scope.size() + messages.size() + sizeof(Entry); }
  };

  std::size_t most_bytes_;
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // the one used last first
  std::map<std::string, std::list<Entry>::iterator> by_id_;
};

}  // namespace eider::server
