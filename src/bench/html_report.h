// The report as one page: a roofline of the kernels, speed by depth of context, and A/B intervals, each with
// its table.
#pragma once

#include <string>

#include "bench/report.h"

namespace eider::bench {

/// `when`: date and time as text.
std::string html_report(const Results& results, const std::string& when);

}  // namespace eider::bench
