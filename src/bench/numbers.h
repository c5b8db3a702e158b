// Numbers as reports write them: no more digits than a measurement has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace eider::bench {

/// Three or four digits, as in "812", "81.2" and "8.12".
std::string number(double value);
/// "61 %"; "-" where it is not known
std::string percent(double share);

/// Five digits: more would be noise.
double rounded(double value);
/// The same of each.
nlohmann::ordered_json rounded_list(const std::vector<double>& values);

}  // namespace eider::bench
