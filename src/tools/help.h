// Help: texts for people, in lines that an 80-column terminal shows whole.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tools/cli_fwd.h"

namespace eider {

/// A line of a list: `name`, and from column `column` on `text`, broken after spaces and semicolons so that
/// no line passes column 80. Ends with a newline.
std::string help_line(std::string_view name, std::string_view text, std::size_t column);

/// How --help lists flags and commands.
std::shared_ptr<CLI::Formatter> make_help_formatter();

}  // namespace eider
