#include "bench/side_output.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/model_bench.h"
#include "text/json_text.h"

namespace eider::bench {
namespace {

using json = nlohmann::ordered_json;

std::optional<double> number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The name of a test that llama-bench tells by its numbers.
std::string test_of(const json& object) {
  if (const std::string test = text_of(object, "test"); !test.empty()) return test;
  const auto tokens = [&](const char* key) {
    return static_cast<std::int64_t>(std::clamp(number_of(object, key).value_or(0), 0.0, 1e12));
  };
  const ModelTest test{tokens("n_prompt"), tokens("n_gen"), tokens("n_depth")};
  return test.tokens() > 0 ? test.name() : "";
}

std::optional<Figure> figure_of(const json& object) {
  if (!object.is_object()) return std::nullopt;
  for (const char* key : {"tok_s", "avg_ts", "decode_tok_s"}) {
    const std::optional<double> rate = number_of(object, key);
    if (!rate || !(*rate > 0) || !std::isfinite(*rate)) continue;
    std::string answer = text_of(object, "logits_hash");
    if (answer.empty()) answer = text_of(object, "text");
    std::string model = text_of(object, "model");
    if (model.empty()) model = text_of(object, "model_filename");
    model.erase(0, model.rfind('/') + 1);
    return Figure{std::move(model), test_of(object), *rate, std::move(answer)};
  }
  return std::nullopt;
}

std::vector<Figure> figures_of(const json& document) {
  json single = json::array();
  const json* list = &document;
  if (document.is_object()) {
    const auto models = document.find("models");
    if (models == document.end()) single.push_back(document);
    list = models == document.end() ? &single : &*models;
  }
  std::vector<Figure> figures;
  if (!list->is_array()) return figures;
  for (const json& entry : *list)
    if (std::optional<Figure> figure = figure_of(entry)) figures.push_back(*std::move(figure));
  return figures;
}

/// The number that ends `text`, spaces aside.
std::optional<double> last_number(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  const std::size_t before = text.find_last_not_of("0123456789.");
  const std::string_view digits = before == std::string_view::npos ? text : text.substr(before + 1);
  double value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size() || !(value > 0)) return std::nullopt;
  return value;
}

std::optional<double> last_rate(std::string_view text) {
  constexpr std::string_view kUnits[] = {"tok/s", "t/s", "tokens/s", "tokens per second"};
  std::size_t at = std::string_view::npos;
  std::optional<double> rate;
  for (const std::string_view unit : kUnits)
    for (std::size_t found = text.rfind(unit); found != std::string_view::npos && found > 0;
         found = text.rfind(unit, found - 1)) {
      if (at != std::string_view::npos && found < at) break;
      const std::optional<double> number = last_number(text.substr(0, found));
      if (!number) continue;
      at = found;
      rate = number;
      break;
    }
  return rate;
}

}  // namespace

Result<std::vector<Figure>> parse_side_output(const std::string& out, std::string_view err) {
  const json document = parse_ordered_json(out);
  if (std::vector<Figure> figures = figures_of(document); !figures.empty()) return figures;
  if (const std::optional<double> rate = last_rate(out)) return std::vector{Figure{.tok_s = *rate}};
  if (const std::optional<double> rate = last_rate(err))
    return std::vector{Figure{.tok_s = *rate, .answer = out}};
  return error("prints no speed: JSON of eider or llama-bench, or a number followed by tok/s, is expected");
}

}  // namespace eider::bench
