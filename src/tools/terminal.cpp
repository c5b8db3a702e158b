#include "tools/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/format_bytes.h"

namespace eider {
namespace {

constexpr std::string_view kRed = "\033[31m", kYellow = "\033[33m", kNoColor = "\033[0m";
constexpr const char* kEraseLine = "\r\033[K";
constexpr std::int64_t kMaxBarWidth = 40;

bool variable_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::int64_t stderr_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// ", 312.0 MiB/s, 0:12 left"; nothing in the first moment.
std::string pace_of(std::int64_t done, std::int64_t left, std::chrono::duration<double> time) {
  const double seconds = time.count();
  if (done <= 0 || seconds < 0.5) return "";
  const double rate = static_cast<double>(done) / seconds;
  const auto seconds_left = static_cast<std::int64_t>(std::ceil(static_cast<double>(left) / rate));
  return fmt::format(", {}/s, {}:{:02} left", format_bytes(static_cast<std::int64_t>(rate)),
                     seconds_left / 60, seconds_left % 60);
}

}  // namespace

Terminal Terminal::from_environment() {
  return Terminal(is_terminal(STDERR_FILENO), shows_colors(STDERR_FILENO));
}

void Terminal::note(std::string_view text) const {
  fmt::print(stderr, "{}\n", text);
}
void Terminal::warning(std::string_view text) const {
  line("warning:", kYellow, text);
}
void Terminal::error(std::string_view text) const {
  line("error:", kRed, text);
}

void Terminal::line(std::string_view label, std::string_view color, std::string_view text) const {
  if (color_)
    fmt::print(stderr, "{}{}{} {}\n", color, label, kNoColor, text);
  else
    fmt::print(stderr, "{} {}\n", label, text);
}

ProgressBar::ProgressBar(const Terminal& terminal, std::string title, Unit unit)
    : enabled_(terminal.interactive()),
      title_(std::move(title)),
      unit_(unit),
      started_(Clock::now()),
      next_draw_(started_) {}

void ProgressBar::update(std::int64_t done, std::int64_t total) {
  if (!enabled_ || total <= 0 || Clock::now() < next_draw_) return;
  next_draw_ = Clock::now() + std::chrono::milliseconds(100);
  drawn_ = true;

  if (first_ < 0) first_ = done;
  const std::string pace =
      unit_ == Unit::kBytes ? pace_of(done - first_, total - done, Clock::now() - started_) : "";
  constexpr std::int64_t kAroundBar = 10;  // brackets, spaces and "100 %"
  const std::int64_t room =
      stderr_columns() - static_cast<std::int64_t>(title_.size() + pace.size()) - kAroundBar;
  const std::int64_t width = std::clamp<std::int64_t>(room, 0, kMaxBarWidth);
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto filled = static_cast<std::int64_t>(share * static_cast<double>(width));
  fmt::print(stderr, "{}{} [{}{}] {:3.0f} %{}", kEraseLine, title_,
             std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(width - filled), ' '), 100 * share, pace);
  std::fflush(stderr);
}

void ProgressBar::erase() {
  if (!drawn_) return;
  fmt::print(stderr, "{}", kEraseLine);
  std::fflush(stderr);
  drawn_ = false;
}

bool is_terminal(int descriptor) {
  return isatty(descriptor) == 1 && variable_set("TERM") && std::string_view(std::getenv("TERM")) != "dumb";
}

bool shows_colors(int descriptor) {
  return is_terminal(descriptor) && !variable_set("NO_COLOR");
}

Status write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return error("standard output: {}", std::strerror(errno));
  return {};
}

}  // namespace eider
