// How GoogleTest shows JSON: as its text, and not as the container that it would take it for.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "text/json_text.h"

namespace nlohmann {

inline void PrintTo(const json& value, std::ostream* stream) {
  *stream << eider::to_json_text(value);
}

}  // namespace nlohmann
