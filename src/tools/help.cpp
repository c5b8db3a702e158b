#include "tools/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace eider {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kFlagColumn = 30;

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return help_line("  " + make_option_name(option, is_positional) + make_option_opts(option),
                     make_option_desc(option), kFlagColumn);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return help_line("  " + command->get_name(), command->get_description(), kFlagColumn);
  }
};

// The head of `text` that fits `width`, without the space it is broken at; what cannot be broken stays whole.
std::string_view take_line(std::string_view& text, std::size_t width) {
  std::size_t end = text.size();
  if (end > width) {
    const std::size_t space = text.find_last_of(' ', width);
    const std::size_t semicolon = text.find_last_of(';', width - 1);
    if (space != std::string_view::npos)
      end = space;
    else if (semicolon != std::string_view::npos)
      end = semicolon + 1;
    else
      end = std::min(text.find(' ', width), text.size());
  }
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return line;
}

}  // namespace

std::string help_line(std::string_view name, std::string_view text, std::size_t column) {
  std::string lines(name);
  std::size_t used = name.size();  // columns of the line that is being written
  if (used + 1 > column) {
    lines += '\n';
    used = 0;
  }
  while (!text.empty()) {
    lines += fmt::format("{:{}}{}\n", "", column - used, take_line(text, kColumns - column));
    used = 0;
  }
  if (!lines.ends_with('\n')) lines += '\n';
  return lines;
}

std::shared_ptr<CLI::Formatter> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace eider
