// Terminal: everything that eider says to a person beside the answer itself: notes, warnings, errors and
// progress bars, all on stderr. Commands get it passed in; nothing below tools/ prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace eider {

class Terminal {
 public:
  /// Looks once at whether stderr is a terminal and at NO_COLOR and TERM.
  static Terminal from_environment();

  void note(std::string_view text) const;     ///< a line as it is
  void warning(std::string_view text) const;  ///< "warning: <text>"
  void error(std::string_view text) const;    ///< "error: <text>"

  /// Whether progress bars can be drawn and erased.
  bool interactive() const { return interactive_; }

 private:
  Terminal(bool interactive, bool color) : interactive_(interactive), color_(color) {}
  void line(std::string_view label, std::string_view color, std::string_view text) const;

  bool interactive_;
  bool color_;
};

/// A bar on the last line of stderr, erased when it goes out of scope; draws nothing where stderr is no
/// terminal.
class ProgressBar {
 public:
  enum class Unit : std::uint8_t { kShare, kBytes };  ///< bytes: with the rate and the time left
  ProgressBar(const Terminal& terminal, std::string title, Unit unit = Unit::kShare);
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws at most ten times a second.
  void update(std::int64_t done, std::int64_t total);
  void erase();

 private:
  using Clock = std::chrono::steady_clock;

  bool enabled_;
  bool drawn_ = false;
  std::string title_;
  Unit unit_;
  Clock::time_point started_, next_draw_;
  std::int64_t first_ = -1;  // what was done at the first update
};

/// Whether file descriptor `descriptor` is a terminal that can move its cursor (TERM is neither absent nor
/// dumb).
bool is_terminal(int descriptor);
/// Whether it also is to show colours: NO_COLOR is not set.
bool shows_colors(int descriptor);

/// Writes to stdout at once. Fails with the operating system's reason: a closed pipe, a full disk.
Status write_stdout(std::string_view text);

}  // namespace eider
