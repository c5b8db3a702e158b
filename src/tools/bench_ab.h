// `eider bench --ab`: what its sides are as processes, and their run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/ab.h"
#include "bench/ab_report.h"
#include "tools/bench_flags.h"
#include "tools/interrupt.h"
#include "tools/terminal.h"

namespace eider {

/// Both sides as the words of the processes that measure them.
struct AbCommands {
  bench::AbSides sides;  ///< as given
  std::vector<std::string> a, b;
};

/// The sides that `flags` ask for. One of flags becomes this program's own `bench`, with what else the
/// command line gives and the side does not. Fails where it is not one that measures models.
Result<AbCommands> ab_commands(const BenchFlags& flags);

/// Runs the pairs behind a progress bar; tells after the first one how long they take at most.
Result<bench::AbReport> run_ab(const AbCommands& commands, int pairs,
                               const std::function<double()>& read_roof, const Terminal& terminal,
                               const InterruptGuard& interrupt);

}  // namespace eider
