// printable(): text from a file made fit for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace eider {

/// `text` in double quotes, bytes that are not printable ASCII as \xNN, cut after 80 characters: names in a
/// damaged file can be anything.
std::string printable(std::string_view text);

}  // namespace eider
