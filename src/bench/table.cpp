#include "bench/table.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace eider::bench {
namespace {

/// Terminal columns that `text` takes: its UTF-8 characters ("±" is one).
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string spaces(width - std::min(width, width_of(text)), ' ');
  return right ? spaces + text : text + spaces;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted;
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return fmt::format("\"{}\"", quoted);
}

std::string csv_line(std::vector<std::string> cells) {
  std::ranges::transform(cells, cells.begin(), csv_cell);
  return fmt::format("{}\n", fmt::join(cells, ","));
}

std::vector<std::string> names(const Table& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.name);
  return names;
}

std::string to_csv(const Table& table) {
  std::string text = csv_line(names(table));
  for (const auto& row : table.rows) text += csv_line(row);
  return text;
}

}  // namespace

std::string to_string(const Table& table, TableStyle style) {
  if (style == TableStyle::kCsv) return to_csv(table);
  const bool markdown = style == TableStyle::kMarkdown;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = width_of(table.columns[i].name);
    for (const auto& row : table.rows) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text = markdown ? "|" : "";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = padded(cells[i], widths[i], table.columns[i].right);
      text += fmt::format(fmt::runtime(markdown ? " {} |" : i == 0 ? "{}" : "  {}"), cell);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text;
  if (!table.title.empty())
    text += fmt::format("{}{}\n{}", markdown ? "### " : "", table.title, markdown ? "\n" : "");
  text += line(names(table));
  if (markdown) {
    text += "|";
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string dashes(widths[i], '-');
      text += table.columns[i].right ? fmt::format(" {}: |", dashes.substr(1)) : fmt::format(" {} |", dashes);
    }
    text += "\n";
  }
  for (const auto& row : table.rows) text += line(row);
  return text;
}

}  // namespace eider::bench
