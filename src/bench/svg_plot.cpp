#include "bench/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/html.h"

namespace eider::bench {
namespace {

struct Tick {
  double at;
  std::string text;
};

/// "1,430", "12.5", "0.02": as many digits as are not 0.
std::string tick_text(double value) {
  std::string text = fmt::format("{:.10g}", value);
  if (text.find_first_of(".e") == std::string::npos)
    for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3)
      text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

/// 1, 2 and 5 of each decade where there are few decades, else 1; nothing finer than ratios of 1.02.
std::vector<Tick> logarithmic_ticks(const Axis& axis) {
  const double decades = std::log10(axis.high / axis.low);
  std::vector<Tick> ticks;
  if (decades < 0.9) {
    double step = 0.01;
    for (const double wider : {0.02, 0.05, 0.1, 0.2, 0.5, 1.0})
      if ((axis.high - axis.low) / step > 7) step = wider;
    for (double at = std::ceil(axis.low / step) * step; at <= axis.high * (1 + 1e-9); at += step)
      ticks.push_back({at, tick_text(std::round(at * 100) / 100)});
    return ticks;
  }
  const std::vector<double> parts = decades < 2.5 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  for (double decade = std::pow(10, std::floor(std::log10(axis.low))); decade <= axis.high; decade *= 10)
    for (const double part : parts)
      if (part * decade >= axis.low * (1 - 1e-9) && part * decade <= axis.high * (1 + 1e-9))
        ticks.push_back({part * decade, tick_text(part * decade)});
  return ticks;
}

/// Round numbers, at most `most` of them.
std::vector<Tick> linear_ticks(const Axis& axis, int most) {
  const double least = (axis.high - axis.low) / most;
  double step = std::pow(10, std::floor(std::log10(least)));
  for (const double wider : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
    if (step < least) step *= wider;
  std::vector<Tick> ticks;
  for (double at = axis.low; at <= axis.high * (1 + 1e-9); at += step) ticks.push_back({at, tick_text(at)});
  return ticks;
}

std::vector<Tick> ticks_of(const Axis& axis, int most) {
  if (!axis.shown) return {};
  return axis.logarithmic ? logarithmic_ticks(axis) : linear_ticks(axis, most);
}

double share_of(const Axis& axis, double value) {
  if (axis.logarithmic) return std::log(value / axis.low) / std::log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

bool within(const Axis& axis, double value) {
  return value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9);
}

}  // namespace

Axis logarithmic_axis(std::string label, double low, double high) {
  const double room = std::pow(high / low, 0.06) * 1.02;
  return {std::move(label), low / room, high * room, true, true};
}

Axis linear_axis(std::string label, double high) {
  return {std::move(label), 0, high > 0 ? high * 1.06 : 1, false, true};
}

SvgPlot::SvgPlot(int width, int height, Axis x, Axis y)
    : width_(width),
      height_(height),
      x_(std::move(x)),
      y_(std::move(y)),
      left_(y_.shown ? 56 : 8),
      right_(width - 16),
      top_(y_.shown ? 28 : 8),
      bottom_(height - 46) {}

SvgPlot::Point SvgPlot::place(Point at) const {
  return {left_ + share_of(x_, at.first) * (right_ - left_),
          bottom_ - share_of(y_, at.second) * (bottom_ - top_)};
}

void SvgPlot::line(const std::vector<Point>& points, std::string_view classes) {
  std::string path;
  for (const Point& point : points) {
    if (!within(x_, point.first) || !within(y_, point.second)) continue;
    const auto [x, y] = place(point);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x, y);
  }
  marks_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classes, path);
}

void SvgPlot::dot(Point at, double radius, std::string_view classes, std::string_view hint) {
  const auto [x, y] = place(at);
  marks_ +=
      fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\"><title>{}</title></circle>\n",
                  classes, x, y, radius, html_escape(hint));
}

void SvgPlot::square(Point at, double radius, std::string_view classes, std::string_view hint) {
  const auto [x, y] = place(at);
  marks_ += fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:g}\" "
      "height=\"{:g}\"><title>{}</title></rect>\n",
      classes, x - radius, y - radius, 2 * radius, 2 * radius, html_escape(hint));
}

void SvgPlot::label(Point at, std::string_view text, std::string_view anchor, Point shift, double degrees) {
  const auto [x, y] = place(at);
  const std::string turn =
      degrees == 0 ? "" : fmt::format(" transform=\"rotate({:.1f} {:.1f} {:.1f})\"", degrees, x, y);
  labels_ += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n",
                         x + shift.first, y + shift.second, anchor, turn, html_escape(text));
}

std::string SvgPlot::axes() const {
  std::string svg;
  double last_end = -1e9;  // of the text of the tick before: texts must not meet
  for (const Tick& tick : ticks_of(x_, static_cast<int>(inner_width() / 70))) {
    const double x = place({tick.at, y_.low}).first;
    svg += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f} V{2:.1f}\"/>\n", x, top_, bottom_);
    const double half = 4.0 * static_cast<double>(tick.text.size());
    if (x - half < last_end + 6) continue;
    last_end = x + half;
    svg += fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x,
                       bottom_ + 17, tick.text);
  }
  for (const Tick& tick : ticks_of(y_, 6)) {
    const double y = place({x_.low, tick.at}).second;
    svg += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f} H{2:.1f}\"/>\n", left_, y, right_);
    svg += fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                       left_ - 6, y + 4, tick.text);
  }
  svg += fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                     (left_ + right_) / 2, bottom_ + 38, html_escape(x_.label));
  if (y_.shown)
    svg += fmt::format("<text class=\"axis\" x=\"4\" y=\"14\">{}</text>\n", html_escape(y_.label));
  return svg;
}

std::string SvgPlot::svg() const {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}{}</svg>", width_,
                     height_, html_escape(y_.label.empty() ? x_.label : y_.label + " by " + x_.label), axes(),
                     marks_, labels_);
}

}  // namespace eider::bench
