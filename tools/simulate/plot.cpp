#include "tools/simulate/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace signalbox::simulate {
namespace {

constexpr double width = 860, left = 52, right = 90, panel_height = 230, top = 34, bottom = 34,
                 line_height = 12;
constexpr std::size_t most_points = 600;
/// Okabe and Ito's palette: told apart by people with any colour vision.
constexpr std::array<const char*, 8> colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                             "#E69F00", "#56B4E9", "#000000", "#999999"};
const char* colour_of(std::size_t engine) { return colours[engine % colours.size()]; }

double seconds(Instant at) { return to_seconds(at.time_since_epoch()); }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

/// The plot's area and scales, from data to pixels.
struct Axes {
  double from_s, until_s, most, y0;
  double x(double s) const { return left + (width - left - right) * (s - from_s) / (until_s - from_s); }
  double y(double share) const {
    return y0 + top + (panel_height - top - bottom) * (1 - std::min(share / most, 1.0));
  }
};

double greatest_share(std::span<const Panel> panels) {
  double most = 0.1;
  for (const Panel& panel : panels)
    for (const SampleRow& row : panel.report->samples)
      for (const EngineSample& e : row.engines) most = std::max(most, e.planned);
  return std::ceil(most * 10) / 10;
}

/// A step of 1, 2 or 5 times a power of ten that gives at most eight ticks.
double tick_of(double span) {
  const double rough = span / 8, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= rough) return m * power;
  return 10 * power;
}

void add_axes(std::string& out, const Axes& a, std::string_view title) {
  out += fmt::format("<text x=\"{}\" y=\"{:.0f}\" font-weight=\"bold\">{}</text>\n", left, a.y0 + 18,
                     escaped(title));
  const double step = tick_of(a.most);
  for (double v = 0; v < a.most + step / 2; v += step)
    out += fmt::format(
        "<path d=\"M{0:.0f} {1:.1f}H{2:.0f}\" stroke=\"#ddd\"/>"
        "<text x=\"{3:.0f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        left, a.y(v), width - right, left - 6, a.y(v) + 4, v);
  const double tick = tick_of(a.until_s - a.from_s);
  for (double s = std::ceil(a.from_s / tick) * tick; s <= a.until_s; s += tick)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g} s</text>\n", a.x(s),
                       a.y(0) + 16, s);
}

void add_happenings(std::string& out, const Axes& a, const Report& report) {
  for (const Phase& phase : report.phases) {
    if (phase.opens_with.empty()) continue;
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#555\" stroke-dasharray=\"4 3\"/>"
        "<text x=\"{3:.1f}\" y=\"{4:.1f}\" fill=\"#555\">{5}</text>\n",
        a.x(seconds(phase.from)), a.y(a.most), a.y(0), a.x(seconds(phase.from)) + 4, a.y(a.most) + 10,
        escaped(phase.opens_with));
  }
}

/// Text at the end of a line.
struct Label {
  double y;
  std::size_t engine;
  double value;
};

/// From the bottom up, each at least a line above the one below it.
void add_labels(std::string& out, std::vector<Label> labels, const Report& report) {
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y > b.y; });
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) labels[i].y = std::min(labels[i].y, labels[i - 1].y - line_height);
    out += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" fill=\"{}\">{} {:.2f}</text>\n", width - right + 6,
                       labels[i].y + 4, colour_of(labels[i].engine),
                       escaped(report.engines[labels[i].engine]), labels[i].value);
  }
}

void add_lines(std::string& out, const Axes& a, const Report& report) {
  const auto& samples = report.samples;
  const std::size_t stride = std::max<std::size_t>(1, samples.size() / most_points);
  std::vector<Label> labels;
  for (std::size_t e = 0; e < report.engines.size(); ++e) {
    std::string points;
    double last = 0;
    for (std::size_t s = 0; s < samples.size(); s += stride) {
      const double at = seconds(samples[s].at);
      if (at < a.from_s) continue;
      last = samples[s].engines[e].planned;
      points += fmt::format("{}{:.1f} {:.1f}", points.empty() ? "M" : "L", a.x(at), a.y(last));
    }
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", points,
                       colour_of(e));
    labels.push_back({a.y(last), e, last});
  }
  add_labels(out, std::move(labels), report);
}

}  // namespace

std::string as_svg(std::span<const Panel> panels) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n",
      width, panel_height * static_cast<double>(panels.size()));
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const Report& report = *panels[p].report;
    const Axes axes{seconds(report.phases.front().from), to_seconds(report.duration), greatest_share(panels),
                    static_cast<double>(p) * panel_height};
    add_axes(out, axes, panels[p].title);
    add_happenings(out, axes, *panels.front().report);
    add_lines(out, axes, report);
  }
  return out + "</svg>\n";
}

}  // namespace signalbox::simulate
