#include "bench/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/html.h"
#include "bench/numbers.h"
#include "bench/svg_plot.h"
#include "format/storage_format.h"

namespace eider::bench {
namespace {

using Point = SvgPlot::Point;

std::string series_class(std::size_t index) {
  return fmt::format("s{}", index % kSeriesColors);
}

struct LegendEntry {
  std::string text;
  std::string classes;
};

std::string legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<ul class=\"legend\">\n";
  for (const LegendEntry& entry : entries)
    html += fmt::format(
        "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><circle class=\"dot {}\" cx=\"7\" cy=\"7\" "
        "r=\"5\"/></svg>{}</li>\n",
        entry.classes, html_escape(entry.text));
  return html + "</ul>\n";
}

/// A kernel in the plane of the roofline.
struct RooflinePoint {
  double intensity, gop_s;  ///< operations a byte; 10⁹ operations a second
  bool cold, attention;
  std::string isa;
  std::string hint;
};

/// The kernels that ran on the most threads.
std::vector<RooflinePoint> roofline_points(const Results& results, int threads) {
  std::vector<RooflinePoint> points;
  for (const KernelResult& result : results.kernels) {
    if (result.threads != threads) continue;
    const KernelCase& c = result.kernel;
    points.push_back(
        {result.gop_s() / result.gb_s(), result.gop_s(), c.cold, false, result.isa,
         fmt::format("{} {} {}x{}, {} token{}, {}, from {}: {} Gop/s, {} GB/s, {} of the roof",
                     c.tokens == 1 ? "gemv" : "gemm", c.format_text(), result.rows, c.columns, c.tokens,
                     c.tokens == 1 ? "" : "s", result.isa, c.cold ? "memory" : "L2 cache",
                     number(result.gop_s()), number(result.gb_s()), percent(result.fraction_of_roof))});
  }
  for (const AttentionResult& result : results.attention) {
    if (result.threads != threads) continue;
    const AttentionCase& c = result.attention;
    points.push_back({result.gop_s() / result.gb_s(), result.gop_s(), true, true, result.isa,
                      fmt::format("attention {}:{}x{}, {} tokens at {}, {}: {} Gop/s, {} of the roof",
                                  c.shape.heads, c.shape.kv_heads, c.shape.head_dim, c.tokens, c.position,
                                  result.isa, number(result.gop_s()), percent(result.fraction_of_roof))});
  }
  return points;
}

/// The middle of the roofs that were read beside the kernels of one instruction set.
Roof middle_roof(const Results& results, const std::string& isa, int threads) {
  Samples memory, cache, fp32, int8;
  const auto add = [&](const auto& result) {
    if (result.isa != isa || result.threads != threads) return;
    memory.add(result.roof.memory_read);
    cache.add(result.roof.cache_read);
    fp32.add(result.roof.fp32);
    int8.add(result.roof.int8);
  };
  std::ranges::for_each(results.kernels, add);
  std::ranges::for_each(results.attention, add);
  return {memory.median(), cache.median(), fp32.median(), int8.median()};
}

void draw_roofs(SvgPlot& plot, const Roof& roof, const Axis& x, const Axis& y) {
  const auto draw_slope = [&](double gb_s, const std::string& name, const char* classes) {
    const double begin = std::max(x.low, y.low / gb_s), end = std::min(roof.int8 / gb_s, x.high);
    plot.line({{begin, begin * gb_s}, {end, end * gb_s}}, classes);
    const Point from = plot.place({begin, begin * gb_s}), to = plot.place({end, end * gb_s});
    const double degrees = std::atan2(to.second - from.second, to.first - from.first) * 180 / M_PI;
    const double at = begin * std::pow(end / begin, 0.08);
    plot.label({at, at * gb_s}, fmt::format("{} {} GB/s", name, number(gb_s)), "start", {0, -6}, degrees);
  };
  draw_slope(roof.memory_read, "memory", "roof");
  draw_slope(roof.cache_read, "L2 cache", "roof dashed");
  const auto draw_peak = [&](double gop_s, const char* name) {
    plot.line({{std::max(x.low, gop_s / roof.cache_read), gop_s}, {x.high, gop_s}}, "roof");
    plot.label({x.high, gop_s}, fmt::format("{} peak {} Gop/s", name, number(gop_s)), "end", {0, -6});
  };
  draw_peak(roof.int8, "int8");
  if (roof.fp32 < roof.int8 * 0.99) draw_peak(roof.fp32, "fp32");
}

std::string roofline(const Results& results) {
  int threads = 1;
  for (const KernelResult& result : results.kernels) threads = std::max(threads, result.threads);
  for (const AttentionResult& result : results.attention) threads = std::max(threads, result.threads);
  const std::vector<RooflinePoint> points = roofline_points(results, threads);
  std::vector<std::string> isas;
  for (const RooflinePoint& point : points)
    if (std::ranges::find(isas, point.isa) == isas.end()) isas.push_back(point.isa);
  const Roof roof = middle_roof(results, isas.front(), threads);

  double least_x = 1, most_x = 2 * roof.int8 / roof.memory_read, least_y = roof.fp32, most_y = roof.int8;
  for (const RooflinePoint& point : points) {
    least_x = std::min(least_x, point.intensity);
    most_x = std::max(most_x, point.intensity);
    least_y = std::min(least_y, point.gop_s);
    most_y = std::max(most_y, point.gop_s);
  }
  const Axis x = logarithmic_axis("arithmetic intensity, operations a byte", least_x, most_x);
  const Axis y = logarithmic_axis("speed, Gop/s (10⁹ operations a second)", least_y, most_y);
  const auto draw = [&](int width, int height) {
    SvgPlot plot(width, height, x, y);
    draw_roofs(plot, roof, x, y);
    for (const RooflinePoint& point : points) {
      const auto series = static_cast<std::size_t>(std::ranges::find(isas, point.isa) - isas.begin());
      const std::string classes = fmt::format("dot {}{}", series_class(series), point.cold ? "" : " hollow");
      const Point at{point.intensity, point.gop_s};
      if (point.attention)
        plot.square(at, 4, classes, point.hint);
      else
        plot.dot(at, 4, classes, point.hint);
    }
    return plot.svg();
  };
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < isas.size(); ++i) entries.push_back({isas[i], series_class(i)});
  entries.push_back({"weights from memory", ""});
  entries.push_back({"weights from L2 caches", "hollow"});
  return fmt::format(
             "<h2>Kernels under the machine's roofs</h2>\n<p>Each kernel is a point (attention: a square), "
             "{} thread{}. A byte is one of "
             "weights as stored, or of keys and values; a multiply-add is two operations. The roofs are "
             "those of {}, "
             "read beside the kernels.</p>\n",
             threads, threads == 1 ? "" : "s", html_escape(isas.front())) +
         for_both_widths(520, 400, draw) + legend(entries);
}

/// Tests that differ in depth alone.
struct DepthSeries {
  std::string name;
  std::vector<const ModelResult*> results;
};

std::vector<DepthSeries> depth_series(const std::vector<ModelResult>& models, bool prompts) {
  std::vector<DepthSeries> series;
  for (const ModelResult& result : models) {
    if ((result.test.prompt > 0) != prompts) continue;
    ModelTest test = result.test;
    test.depth = 0;
    const std::string name =
        fmt::format("{}, {}, {} thread{}, -ub {}", result.run.model, test.name(), result.run.threads,
                    result.run.threads == 1 ? "" : "s", result.run.max_batch_tokens);
    auto found = std::ranges::find(series, name, &DepthSeries::name);
    if (found == series.end()) found = series.insert(series.end(), {name, {}});
    found->results.push_back(&result);
  }
  for (DepthSeries& one : series)
    std::ranges::sort(one.results, {}, [](const ModelResult* result) { return result->test.depth; });
  return series;
}

std::string depth_chart(const std::vector<ModelResult>& models, bool prompts) {
  const std::vector<DepthSeries> series = depth_series(models, prompts);
  double depth = 0, most = 0;
  for (const DepthSeries& one : series)
    for (const ModelResult* result : one.results) {
      depth = std::max(depth, static_cast<double>(result->test.depth));
      most = std::max(most, result->tok_s.median() + result->tok_s.spread());
    }
  if (depth == 0) return "";
  const auto draw = [&](int width, int height) {
    SvgPlot plot(width, height, linear_axis("tokens in the context before", depth),
                 linear_axis("tok/s", most));
    for (std::size_t i = 0; i < series.size(); ++i) {
      std::vector<Point> curve;
      for (const ModelResult* result : series[i].results) {
        const auto at = static_cast<double>(result->test.depth);
        const double middle = result->tok_s.median(), spread = result->tok_s.spread();
        curve.emplace_back(at, middle);
        plot.line({{at, std::max(0.0, middle - spread)}, {at, middle + spread}},
                  "bar faint " + series_class(i));
        plot.dot(curve.back(), 4, "dot " + series_class(i),
                 fmt::format("{} at {}: {:.2f} ± {:.2f} tok/s", series[i].name, result->test.depth, middle,
                             spread));
      }
      plot.line(curve, "curve " + series_class(i));
    }
    return plot.svg();
  };
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < series.size(); ++i) entries.push_back({series[i].name, series_class(i)});
  return fmt::format("<h2>{} by depth of context</h2>\n", prompts ? "Prompts" : "Decoding") +
         for_both_widths(360, 300, draw) + legend(entries);
}

std::string models_section(const std::vector<ModelResult>& models) {
  std::string html = depth_chart(models, false) + depth_chart(models, true);
  if (html.empty()) html = "<h2>Models</h2>\n";
  return html +
         "<p>Medians, ± half the distance of the quartiles (the bars). Roof: the share of the machine's read "
         "bandwidth "
         "in decoding, of its int8 or fp32 peak in prompts.</p>\n" +
         html_table(model_table(models));
}

std::string ab_chart(const std::vector<AbTest>& tests) {
  double low = 1 / 1.02, high = 1.02;
  for (const AbTest& test : tests)
    for (const double ratio : test.ratios) {
      low = std::min(low, ratio);
      high = std::max(high, ratio);
    }
  const auto rows = static_cast<double>(tests.size());
  const Axis x = logarithmic_axis("B / A (above 1: B is faster)", low, high);
  const Axis y{"", 0, rows, false, false};
  const auto draw = [&](int width, int height) {
    SvgPlot plot(width, height, x, y);
    plot.line({{1, 0}, {1, rows}}, "roof dashed");
    for (std::size_t i = 0; i < tests.size(); ++i) {
      const AbTest& test = tests[i];
      const double top = rows - static_cast<double>(i), middle = top - 0.68;
      const std::string name = test.model.empty() ? test.test : test.model + " " + test.test;
      plot.label({x.low, top - 0.3}, name.empty() ? "speed" : name, "start");
      for (const double ratio : test.ratios)
        plot.dot({ratio, middle}, 3, "dot faint " + series_class(0), fmt::format("a pair: {:.3f}", ratio));
      if (test.ratios.empty()) continue;
      if (test.enough())
        plot.line({{test.ratio.low, middle}, {test.ratio.high, middle}}, "bar " + series_class(0));
      plot.dot({test.ratio.median, middle}, 6, "dot " + series_class(0),
               fmt::format("{:.3f} of {} pairs", test.ratio.median, test.ratios.size()));
    }
    return plot.svg();
  };
  const int height = 54 + 54 * static_cast<int>(tests.size());
  return for_both_widths(height, height, draw);
}

std::string ab_section(const AbSides& sides, const AbReport& report) {
  std::string html =
      "<h2>A against B</h2>\n<p>Large dots are medians of the pairs' ratios, bars their intervals, small "
      "dots the "
      "pairs. An interval that holds 1 says that no difference was seen.</p>\n";
  if (!report.tests.empty()) html += ab_chart(report.tests);
  return html + html_table(ab_table(sides, report));
}

}  // namespace

std::string html_report(const Results& results, const std::string& when) {
  std::string body = fmt::format("<h1>eider bench</h1>\n<p class=\"quiet\">{}, {}</p>\n",
                                 html_escape(results.host.cpu), html_escape(when));
  for (const std::string& left : results.cut_short) body += fmt::format("<p>{}</p>\n", html_escape(left));
  if (!results.kernels.empty() || !results.attention.empty()) body += roofline(results);
  if (!results.kernels.empty()) body += html_table(kernel_table(results.kernels));
  if (!results.attention.empty()) body += html_table(attention_table(results.attention));
  if (!results.models.empty()) body += models_section(results.models);
  if (results.ab) body += ab_section(results.ab_sides, *results.ab);
  body += "<h2>The machine</h2>\n" + html_table(host_table(results.host));
  if (results.machine)
    for (const Table& table : machine_tables(*results.machine)) body += html_table(table);
  return html_page(fmt::format("eider bench, {}", results.host.cpu), body);
}

}  // namespace eider::bench
