// HTML: text and tables as parts of a page that needs nothing but itself.
#pragma once

#include <string>
#include <string_view>

#include "bench/table.h"

namespace eider::bench {

/// `text` so that it means itself between tags and in quoted attributes.
std::string html_escape(std::string_view text);

/// A table that scrolls sideways where it is too wide, its title above it; folded away where it is long.
std::string html_table(const Table& table);

/// A whole page around `body`, which is HTML; `title` is text.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace eider::bench
