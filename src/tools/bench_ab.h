// `eider bench --ab`: what its sides are as processes, and their run.
#pragma once

#include <CLI/CLI.hpp>
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

/// A side of flags becomes this program's own `bench`, with the flags of `command` that the side does not
/// give itself. Throws a CLI::ValidationError where it is not one that measures models.
AbCommands ab_commands(const CLI::App& command, const std::vector<std::string>& sides);

/// Runs the pairs behind a progress bar; tells after the first one how long they take.
Result<bench::AbReport> run_ab(const AbCommands& commands, int pairs,
                               const std::function<double()>& read_roof, const Terminal& terminal,
                               const InterruptGuard& interrupt);

}  // namespace eider
