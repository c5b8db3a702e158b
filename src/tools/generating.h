// Generating: what commands that stream an answer share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "runtime/generation.h"
#include "tools/interrupt.h"
#include "tools/terminal.h"

namespace eider {

/// Runs the generation to its end, behind a progress bar while it reads the prompt, and returns the answer;
/// `sink` gets the text as it becomes certain. Ctrl-C ends it early.
Result<std::string> generate(Generation& generation, const std::function<Status(const std::string&)>& sink,
                             const Terminal& terminal, const InterruptGuard& interrupt);

/// A seed for people who gave none. Seeds are short enough to be typed again.
std::uint64_t draw_seed();

}  // namespace eider
