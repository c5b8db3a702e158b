// JSON files from outside: strict, of bounded depth, without duplicate keys, and errors in one line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace eider {

/// Parses UTF-8 text of at most 64 levels; a duplicate key in an object is an error.
Result<nlohmann::json> parse_json(std::string_view text);

/// The same with the order of keys kept. At most 512 keys of an object, whose list is searched for each, and
/// 2^20 keys in all.
Result<nlohmann::ordered_json> parse_json_in_order(std::string_view text);

/// Reads and parses a file of at most `most_bytes`; errors begin with its path.
Result<nlohmann::json> read_json_file(const std::string& path, std::size_t most_bytes);

/// The same of a file that holds an object; an empty one where there is no such file.
Result<nlohmann::json> read_optional_object(const std::string& path, std::size_t most_bytes);

/// The message of a nlohmann exception without its library's prefix.
std::string json_error_text(std::string_view what);

}  // namespace eider
