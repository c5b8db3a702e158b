// The report of an A/B comparison, as a table for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/ab.h"
#include "bench/table.h"

namespace eider::bench {

/// What the sides were, as the person gave them.
struct AbSides {
  std::string a, b;
};

Table ab_table(const AbSides& sides, const AbReport& report);
nlohmann::ordered_json ab_json(const AbSides& sides, const AbReport& report);

}  // namespace eider::bench
