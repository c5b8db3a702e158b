// Side output: what a command that stands for one side of a comparison says of its speed and of its answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace eider::bench {

/// One measured speed.
struct Figure {
  std::string model;  ///< empty where the command does not tell
  std::string test;   ///< as "pp512"; empty where the command does not tell
  double tok_s = 0;
  /// What was computed, as far as it can be compared: a hash of logits, or an answer's bytes. Empty where the
  /// command does not tell.
  std::string answer;
};

/// Finds the figures of a command, by the first of these that fits:
///
/// - JSON on `out`: what `eider bench --json` or `llama-bench -o json` print, a figure for each test; or an
///   object with "tok_s" or "decode_tok_s", as `eider run --json` prints. "logits_hash" is the answer, else
///   "text".
/// - the last number followed by tok/s, t/s, tokens/s or tokens per second on `out`; its answer is unknown.
/// - the same on `err`; the answer is all of `out`.
///
/// Fails where there is none of these.
Result<std::vector<Figure>> parse_side_output(const std::string& out, std::string_view err);

}  // namespace eider::bench
