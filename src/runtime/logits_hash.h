// LogitsHash: XXH3-64 of a stream of fp32 logit rows, as they lie in memory (little-endian). Two runs that
// print the same hash sampled from the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace eider {

class LogitsHash {
 public:
  LogitsHash();

  void add(std::span<const float> row);
  /// Of the rows so far.
  std::uint64_t value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace eider
