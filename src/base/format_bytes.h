// How sizes are told to people.
#pragma once

#include <cstdint>
#include <string>

namespace eider {

/// "1.5 GiB", "312.0 MiB"
std::string format_bytes(std::int64_t bytes);

}  // namespace eider
