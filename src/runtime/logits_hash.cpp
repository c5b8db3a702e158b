#include "runtime/logits_hash.h"

#include <xxhash.h>

#include <new>

namespace eider {

LogitsHash::LogitsHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void LogitsHash::add(std::span<const float> row) {
  XXH3_64bits_update(state_.get(), row.data(), row.size_bytes());
}

std::uint64_t LogitsHash::value() const {
  return XXH3_64bits_digest(state_.get());
}

void LogitsHash::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

}  // namespace eider
