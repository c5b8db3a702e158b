// SvgPlot: a picture with two axes, as SVG that stands in a page of html.h and takes its colours from there.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eider::bench {

/// Colours of series: classes s0, s1, ... of the page, taken in turn.
inline constexpr int kSeriesColors = 6;

struct Axis {
  std::string label;  ///< with the unit
  double low = 0, high = 1;
  bool logarithmic = false;
  bool shown = true;  ///< its ticks and label
};

/// low and high with some room around them, for a logarithmic axis; both above 0.
Axis logarithmic_axis(std::string label, double low, double high);
/// From 0 to a little above `high`.
Axis linear_axis(std::string label, double high);

class SvgPlot {
 public:
  /// Pixels of the whole picture; a page shows it at most a little larger.
  SvgPlot(int width, int height, Axis x, Axis y);

  using Point = std::pair<double, double>;

  /// Through points in the axes' units; what lies outside the axes is not drawn. `classes`: of the page's
  /// style.
  void line(const std::vector<Point>& points, std::string_view classes);
  /// `hint` is shown where a pointer rests on it.
  void dot(Point at, double radius, std::string_view classes, std::string_view hint);
  /// The same as a square.
  void square(Point at, double radius, std::string_view classes, std::string_view hint);
  /// `anchor`: "start", "middle" or "end"; `shift` moves it by pixels, down and right being positive.
  void label(Point at, std::string_view text, std::string_view anchor, Point shift = {0, 0},
             double degrees = 0);

  /// Pixels of a point.
  Point place(Point at) const;
  /// Pixels of the inner picture.
  double inner_width() const { return right_ - left_; }

  std::string svg() const;

 private:
  std::string axes() const;

  int width_, height_;
  Axis x_, y_;
  double left_, right_, top_, bottom_;
  std::string marks_;
  std::string labels_;  // above all marks
};

/// The same picture drawn for a desktop and for a phone; draw(width, height) gives the SVG.
template <class Draw>
std::string for_both_widths(int wide_height, int narrow_height, Draw draw) {
  return "<figure><div class=\"wide\">" + draw(960, wide_height) + "</div><div class=\"narrow\">" +
         draw(360, narrow_height) + "</div></figure>\n";
}

}  // namespace eider::bench
