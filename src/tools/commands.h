// The commands of the program. Each adds its subcommand to the command line; main.cpp runs the one that was
// chosen.
#pragma once

#include <functional>

#include "base/result.h"
#include "tools/cli_fwd.h"
#include "tools/terminal.h"

namespace eider {

/// Exit codes of the program. An Error from a command is kExitFailure.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;        ///< a file, the model or the machine stood in the way
inline constexpr int kExitUsage = 2;          ///< the command line makes no sense
inline constexpr int kExitInterrupted = 130;  ///< Ctrl-C, as shells count it

/// What the chosen command does once the command line is parsed; returns the exit code.
using Action = std::function<Result<int>(const Terminal&)>;

/// Each sets `action` when its subcommand is the one on the command line.
void add_run_command(CLI::App& program, Action& action);
void add_chat_command(CLI::App& program, Action& action);
void add_serve_command(CLI::App& program, Action& action);
void add_inspect_command(CLI::App& program, Action& action);
void add_perplexity_command(CLI::App& program, Action& action);
void add_tokenize_command(CLI::App& program, Action& action);
void add_bench_command(CLI::App& program, Action& action);
void add_prepare_command(CLI::App& program, Action& action);
void add_cache_command(CLI::App& program, Action& action);

}  // namespace eider
