// The time that strftime_now() tells in reference renderings: 2026-07-04 12:30:05, a Saturday.
#pragma once

#include <ctime>

namespace eider {

inline std::tm reference_time() {
  std::tm time{};
  time.tm_year = 126;
  time.tm_mon = 6;
  time.tm_mday = 4;
  time.tm_hour = 12;
  time.tm_min = 30;
  time.tm_sec = 5;
  time.tm_wday = 6;
  time.tm_yday = 184;
  return time;
}

}  // namespace eider
