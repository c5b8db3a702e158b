#include "bench/html.h"

#include <fmt/format.h>

namespace eider::bench {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --page: #fbfbfa; --ink: #1d2126; --quiet: #5c646e; --line: #d5d9de; --zebra: #f1f3f5;
  --s0: #0b64b0; --s1: #c2481a; --s2: #22804c; --s3: #8445ad; --s4: #8f6a00; --s5: #b0286e; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --ink: #e6e8eb; --quiet: #9aa3ad; --line: #3a4149;
  --zebra: #1d2228; --s0: #6cb4f5; --s1: #f59468; --s2: #6fcf97; --s3: #c79bf0; --s4: #e0b84c; --s5: #f285b8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { margin: .25rem 0 .75rem; max-width: 46rem; }
.quiet { color: var(--quiet); }
figure { margin: 0 0 1rem; }
svg { display: block; width: 100%; height: auto; font: 13px system-ui, sans-serif; fill: var(--ink); }
.narrow { display: none; }
@media (max-width: 599px) { .wide { display: none; } .narrow { display: block; } }
.grid { stroke: var(--line); stroke-width: 1; fill: none; }
.roof { stroke: var(--quiet); stroke-width: 2; fill: none; }
.dashed { stroke-dasharray: 6 4; }
.label { paint-order: stroke; stroke: var(--page); stroke-width: 4px; stroke-linejoin: round; }
.axis { fill: var(--quiet); }
.curve { fill: none; stroke: currentColor; stroke-width: 2; }
.dot { fill: currentColor; stroke: currentColor; stroke-width: 1.5; }
.dot.hollow { fill: var(--page); }
.faint { opacity: .45; }
.bar { stroke: currentColor; stroke-width: 3; }
.s0 { color: var(--s0); } .s1 { color: var(--s1); } .s2 { color: var(--s2); }
.s3 { color: var(--s3); } .s4 { color: var(--s4); } .s5 { color: var(--s5); }
ul.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: .5rem 0; padding: 0; font-size: .9rem; }
ul.legend svg { display: inline-block; width: 14px; height: 14px; vertical-align: -2px; margin-right: .35rem; }
summary { cursor: pointer; margin: .5rem 0; }
.scroll { overflow-x: auto; margin: 0 0 1.25rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .25rem .6rem; white-space: pre-line; }
th, td { padding: .25rem .6rem; text-align: left; white-space: nowrap; }
th { border-bottom: 1px solid var(--line); }
th.number, td.number { text-align: right; }
tbody tr:nth-child(even) { background: var(--zebra); }
)css";

std::string html_row(const Table& table, const std::vector<std::string>& cells) {
  std::string row = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    row += fmt::format("<td{}>{}</td>", table.columns[i].right ? " class=\"number\"" : "",
                       html_escape(cells[i]));
  return row + "</tr>\n";
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_table(const Table& table) {
  constexpr std::size_t kMostRowsInSight = 14;
  const bool folded = table.rows.size() > kMostRowsInSight;
  std::string html;
  if (folded) html += fmt::format("<details><summary>Table of {} rows</summary>\n", table.rows.size());
  html += "<div class=\"scroll\" tabindex=\"0\"><table>\n";
  if (!table.title.empty()) html += fmt::format("<caption>{}</caption>\n", html_escape(table.title));
  html += "<thead><tr>";
  for (const Column& column : table.columns)
    html += fmt::format("<th{}>{}</th>", column.right ? " class=\"number\"" : "", html_escape(column.name));
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) html += html_row(table, row);
  html += "</tbody></table></div>\n";
  return folded ? html + "</details>\n" : html;
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      html_escape(title), kStyle, body);
}

}  // namespace eider::bench
