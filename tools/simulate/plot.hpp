// Weights over time as a picture: one panel a report, one line an engine.
#pragma once

#include <span>
#include <string>

#include "tools/simulate/world/report.hpp"

namespace signalbox::simulate {

struct Panel {
  std::string title;
  const Report* report = nullptr;
};

/// An SVG document. All panels share the axes; dashed lines are the happenings of the first.
std::string as_svg(std::span<const Panel> panels);

}  // namespace signalbox::simulate
