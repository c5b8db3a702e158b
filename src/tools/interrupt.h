// InterruptGuard: Ctrl-C as a question that a loop can ask, so that a command ends in its own way.
#pragma once

namespace eider {

/// While one lives, the first SIGINT only sets interrupted(); a second one ends the process as it always
/// does. At most one at a time.
class InterruptGuard {
 public:
  enum class Signals : bool { kInterrupt, kInterruptAndTerminate /* the same for SIGTERM */ };
  explicit InterruptGuard(Signals signals = Signals::kInterrupt);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  Signals signals_;
};

}  // namespace eider
