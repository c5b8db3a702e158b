#include "bench/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/median_interval.h"
#include "bench/numbers.h"
#include "text/json_text.h"

namespace eider::bench {
namespace {

using nlohmann::ordered_json;

/// By how much a roof may move before a ratio says more of the machine than of the program.
constexpr double kTolerated = 0.1;

/// A list of rows in the JSON: what names a row, and where its samples are.
struct Section {
  const char* name;
  ordered_json::json_pointer path;
  std::vector<const char*> keys;
  const char* samples;
};

const std::vector<Section>& sections() {
  using Pointer = ordered_json::json_pointer;
  static const std::vector<Section> kSections = {
      {"model", Pointer("/models"), {"model", "test", "backend", "threads", "n_ubatch"}, "samples"},
      {"kernel",
       Pointer("/kernels"),
       {"kernel", "format", "rows", "columns", "tokens", "isa", "threads", "cache"},
       "products_s"},
      {"attention",
       Pointer("/attention"),
       {"kernel", "kv_type", "heads", "kv_heads", "head_dim", "tokens", "position", "isa", "threads",
        "cache"},
       "layers_s"},
      {"bandwidth",
       Pointer("/machine/bandwidth"),
       {"access", "cache", "page_bytes", "threads", "streams"},
       "samples"},
      {"peak", Pointer("/machine/peaks"), {"isa", "operation", "threads"}, "samples"}};
  return kSections;
}

/// "gemv Q4_K rows 9728 columns 2560": words stand for themselves, numbers after what they are.
Result<std::string> name_of(const Section& section, const ordered_json& row) {
  std::string name;
  for (const char* key : section.keys) {
    const auto found = row.find(key);
    if (found == row.end()) return error("a {} without \"{}\"", section.name, key);
    if (!name.empty()) name += ' ';
    name += found->is_string() ? found->get<std::string>() : fmt::format("{} {}", key, to_json_text(*found));
  }
  return name;
}

Result<MedianInterval> interval_of(const Section& section, const ordered_json& row) {
  std::vector<double> samples;
  const auto found = row.find(section.samples);
  if (found != row.end() && found->is_array())
    for (const ordered_json& sample : *found)
      if (sample.is_number() && sample.get<double>() > 0) samples.push_back(sample.get<double>());
  if (samples.empty()) return error("a {} without samples in \"{}\"", section.name, section.samples);
  return median_interval(std::move(samples));
}

struct NamedRow {
  std::string name;
  const ordered_json* row;
  MedianInterval interval;
};

Result<std::vector<NamedRow>> rows_of(const Section& section, const ordered_json& result) {
  std::vector<NamedRow> rows;
  if (!result.contains(section.path)) return rows;
  const ordered_json& list = result.at(section.path);
  if (!list.is_array()) return error("{} is not a list", section.path.to_string());
  for (const ordered_json& row : list) {
    if (!row.is_object()) return error("{} has an entry that is no object", section.path.to_string());
    EIDER_TRY(std::string name, name_of(section, row));
    EIDER_TRY(const MedianInterval interval, interval_of(section, row));
    rows.push_back({std::move(name), &row, interval});
  }
  return rows;
}

std::optional<double> read_roof_of(const ordered_json& row) {
  const ordered_json::json_pointer path("/roof/memory_read_gb_s");
  if (!row.contains(path) || !row.at(path).is_number() || !(row.at(path).get<double>() > 0))
    return std::nullopt;
  return row.at(path).get<double>();
}

ComparedRow compare_rows(const Section& section, const NamedRow& before, const NamedRow& after) {
  constexpr double kLeastCoverage = 0.85;  // which takes 4 samples
  ComparedRow compared{.section = section.name,
                       .name = after.name,
                       .before = before.interval.median,
                       .after = after.interval.median,
                       .low = after.interval.low / before.interval.high,
                       .high = after.interval.high / before.interval.low};
  compared.enough = std::min(before.interval.coverage, after.interval.coverage) >= kLeastCoverage;
  const std::optional<double> roof_before = read_roof_of(*before.row), roof_after = read_roof_of(*after.row);
  if (roof_before && roof_after) compared.roof = *roof_after / *roof_before;
  if (before.row->contains("logits_hash") && after.row->contains("logits_hash"))
    compared.same_answer = before.row->at("logits_hash") == after.row->at("logits_hash");
  return compared;
}

/// Rows of the same name are matched in their order.
void compare_section(const Section& section, const std::vector<NamedRow>& before,
                     const std::vector<NamedRow>& after, Comparison& into) {
  std::multimap<std::string_view, const NamedRow*> unmatched;
  for (const NamedRow& row : before) unmatched.emplace(row.name, &row);
  for (const NamedRow& row : after) {
    const auto match = unmatched.lower_bound(row.name);
    if (match == unmatched.end() || match->first != row.name) {
      ++into.only_after;
      continue;
    }
    into.rows.push_back(compare_rows(section, *match->second, row));
    unmatched.erase(match);
  }
  into.only_before += static_cast<int>(unmatched.size());
}

std::vector<std::string> machine_warnings(const ordered_json& before, const ordered_json& after) {
  std::vector<std::string> warnings;
  for (const char* key : {"cpu", "l2_bytes", "l3_bytes", "huge_pages", "instruction_sets"}) {
    const ordered_json one = before.value(key, ordered_json()), other = after.value(key, ordered_json());
    if (one != other)
      warnings.push_back(fmt::format("the machines differ in {}: {} before, {} after", key, to_json_text(one),
                                     to_json_text(other)));
  }
  return warnings;
}

const ordered_json* machine_of(const ordered_json& result) {
  if (!result.is_object()) return nullptr;
  const auto found = result.find("machine");
  return found != result.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

Result<Comparison> compare_results(const ordered_json& before, const ordered_json& after) {
  const ordered_json *old_machine = machine_of(before), *new_machine = machine_of(after);
  if (old_machine == nullptr) return error("the first is not what eider bench --json writes");
  if (new_machine == nullptr) return error("the second is not what eider bench --json writes");
  Comparison comparison{.warnings = machine_warnings(*old_machine, *new_machine)};
  for (const Section& section : sections()) {
    EIDER_TRY(const std::vector<NamedRow> old_rows, rows_of(section, before).context("the first"));
    EIDER_TRY(const std::vector<NamedRow> new_rows, rows_of(section, after).context("the second"));
    compare_section(section, old_rows, new_rows, comparison);
  }
  int moved = 0;
  for (const ComparedRow& row : comparison.rows)
    if (row.roof && std::abs(*row.roof - 1) > kTolerated) ++moved;
  if (moved > 0)
    comparison.warnings.push_back(
        fmt::format("beside {} of {} rows the machine's read bandwidth was another by more than 10 %: their "
                    "ratios say little of the program",
                    moved, comparison.rows.size()));
  return comparison;
}

Table comparison_table(const Comparison& comparison) {
  Table table{"",
              {{"what", false},
               {"name", false},
               {"old"},
               {"new"},
               {"new / old"},
               {"interval"},
               {"read roof"},
               {"answers", false},
               {"verdict", false}},
              {}};
  for (const ComparedRow& row : comparison.rows) {
    const char* answers = !row.same_answer ? "-" : *row.same_answer ? "equal" : "differ";
    const char* verdict = !row.enough           ? "too few samples"
                          : !row.beyond_noise() ? "within noise"
                          : row.ratio() > 1     ? "faster"
                                                : "slower";
    table.rows.push_back({row.section, row.name, number(row.before), number(row.after),
                          fmt::format("{:.3f}", row.ratio()),
                          row.enough ? fmt::format("{:.3f} to {:.3f}", row.low, row.high) : "-",
                          row.roof ? fmt::format("{:.2f}", *row.roof) : "-", answers, verdict});
  }
  return table;
}

ordered_json comparison_json(const Comparison& comparison) {
  ordered_json json = {{"only_old", comparison.only_before},
                       {"only_new", comparison.only_after},
                       {"warnings", comparison.warnings},
                       {"rows", ordered_json::array()}};
  for (const ComparedRow& row : comparison.rows) {
    ordered_json entry = {{"what", row.section},           {"name", row.name},
                          {"old", rounded(row.before)},    {"new", rounded(row.after)},
                          {"ratio", rounded(row.ratio())}, {"low", rounded(row.low)},
                          {"high", rounded(row.high)},     {"beyond_noise", row.beyond_noise()},
                          {"read_roof_ratio", nullptr},    {"same_answer", nullptr}};
    if (row.roof) entry["read_roof_ratio"] = rounded(*row.roof);
    if (row.same_answer) entry["same_answer"] = *row.same_answer;
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace eider::bench
