#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace eider {

void check_failed(const char* file, int line, const std::string& text) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text.c_str());
  std::abort();
}

}  // namespace eider
