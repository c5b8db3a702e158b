// InterruptGuard: Ctrl-C as a question that a loop can ask, so that a command ends in its own way.
#pragma once

namespace eider {

/// While one lives, the first SIGINT only sets interrupted(); a second one ends the process as it always
/// does. At most one at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
};

}  // namespace eider
