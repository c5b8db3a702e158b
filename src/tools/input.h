// Input: text that people hand to a command, from a file or from stdin, of bounded size.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace eider {

/// The whole file, or one line: it cannot be read, or has more than 256 MiB.
Result<std::string> read_file(const std::string& path);
/// All of stdin, with the same bound.
Result<std::string> read_stdin();
/// The file, or stdin where the path is "-" or absent.
Result<std::string> read_file_or_stdin(const std::optional<std::string>& path);

}  // namespace eider
