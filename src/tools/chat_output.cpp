#include "tools/chat_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "tools/terminal.h"

namespace eider {
namespace {

constexpr std::string_view kDim = "\033[2m", kPlain = "\033[0m";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Without what a terminal would obey: an answer is untrusted. `text` is valid UTF-8; U+0080..U+009F are its
// control characters beyond ASCII.
std::string without_controls(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool beyond_ascii =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (beyond_ascii) ++i;
    if (beyond_ascii || byte == 0x7F || (byte < 0x20 && byte != '\n' && byte != '\t'))
      shown += kReplacement;
    else
      shown += text[i];
  }
  return shown;
}

}  // namespace

AnswerPrinter::AnswerPrinter(const ThinkingFormat* opened)
    : splitter_(opened), terminal_(isatty(STDOUT_FILENO) == 1), colors_(shows_colors(STDOUT_FILENO)) {}

Status AnswerPrinter::print(std::string_view text) {
  return print(splitter_.push(text));
}

Status AnswerPrinter::finish() {
  EIDER_TRY_STATUS(print(splitter_.finish()));
  return in_line_ ? write_stdout("\n") : Status();
}

// Each part is plain again at its end: the program may be left in the middle of a thought.
Status AnswerPrinter::print(const std::vector<ThinkingSplitter::Part>& parts) {
  for (const ThinkingSplitter::Part& part : parts) {
    const std::string text = terminal_ ? without_controls(part.text) : part.text;
    EIDER_TRY_STATUS(
        write_stdout(part.thinking && colors_ ? fmt::format("{}{}{}", kDim, text, kPlain) : text));
    in_line_ = !text.ends_with('\n');
  }
  return {};
}

}  // namespace eider
