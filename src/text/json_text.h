// JSON text in and out. nlohmann's parser and writer are half of what a file that uses them takes to compile,
// so one file does for all that need nothing special.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace eider {

/// On one line, or with levels indented by `indent`. Bytes that are not UTF-8, as people and paths may bring
/// them, become U+FFFD.
std::string to_json_text(const nlohmann::json& value, int indent = -1);
std::string to_json_text(const nlohmann::ordered_json& value, int indent = -1);

/// With the order of keys kept; discarded (nlohmann's is_discarded(), and no array or object) where `text` is
/// not JSON in UTF-8.
nlohmann::ordered_json parse_ordered_json(const std::string& text);

}  // namespace eider
