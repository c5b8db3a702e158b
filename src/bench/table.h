// Table: rows of text for people, as plain text, Markdown or CSV.
#pragma once

#include <string>
#include <vector>

namespace eider::bench {

enum class TableStyle { kText, kMarkdown, kCsv };

struct Column {
  std::string name;
  bool right = true;  ///< numbers stand to the right
};

struct Table {
  std::string title;  ///< above the table; not in CSV
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< as many cells as columns
};

/// Ends with a newline.
std::string to_string(const Table& table, TableStyle style);

}  // namespace eider::bench
