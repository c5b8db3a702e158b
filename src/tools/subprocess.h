// Subprocess: another program, run to its end with what it writes kept.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/time_limit.h"
#include "tools/interrupt.h"

namespace eider {

struct ProcessResult {
  int exit_code = 0;  ///< 128 + signal where one ended it, as shells count
  std::string out, err;
};

/// Runs `words` (words[0] is the program's path) with an empty stdin and in a process group of its own.
/// Fails, and ends that group, at Ctrl-C ("interrupted"), when `limit` is over, and where it writes more than
/// 64 MiB; fails where it cannot be started.
Result<ProcessResult> run_process(const std::vector<std::string>& words, const InterruptGuard& interrupt,
                                  const bench::TimeLimit& limit);

}  // namespace eider
