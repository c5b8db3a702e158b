#include "tools/interrupt.h"

#include <csignal>

namespace eider {
namespace {

// The one global of the program: a signal handler is given nothing else that it could write to.
volatile std::sig_atomic_t signal_seen = 0;

void on_interrupt(int /*signal*/) {
  signal_seen = 1;
}

}  // namespace

InterruptGuard::InterruptGuard(Signals signals) : signals_(signals) {
  signal_seen = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // the second signal finds the default action again
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  if (signals_ == Signals::kInterruptAndTerminate) sigaction(SIGTERM, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  if (signals_ == Signals::kInterruptAndTerminate) std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::interrupted() const {
  return signal_seen != 0;
}

}  // namespace eider
