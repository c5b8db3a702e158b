// Local time: moments as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace eider {

/// "2026-11-30 04:10" in the time zone of the process; `seconds` since 1970.
std::string local_time(std::int64_t seconds);

}  // namespace eider
