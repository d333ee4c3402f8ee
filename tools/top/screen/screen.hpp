// The picture of `top`: lines of styled text for a terminal of a given size. What is drawn is a function of the fleet,
// of what the operator has chosen, and of the time.
#pragma once

#include <string>
#include <vector>

#include "tools/fleet_view/status.hpp"
#include "tools/fleet_view/view.hpp"
#include "tools/top/screen/ui.hpp"

namespace signalbox::top {

enum class Look : std::uint8_t { plain, dim, bold, head, good, warn, bad, chosen };

struct Span {
  std::string text;
  Look look = Look::plain;
};
using Line = std::vector<Span>;

struct Screen {
  std::vector<Line> lines;        ///< as many as the terminal has
  std::vector<EngineName> shown;  ///< the engines of the list, in its order
  std::size_t rows = 0;           ///< of the list
  std::size_t page = 0;           ///< rows of the list on a page
};

struct Size {
  std::size_t columns = 80;
  std::size_t lines = 24;
};

/// `title`: of which fleet, and from where. Moves `ui.first` so that the chosen row can be seen.
Screen draw(const fleet_view::FleetView& view, Ui& ui, std::string_view title, Instant now, Size size);

/// Without its looks.
std::string text_of(const Line& line);

}  // namespace signalbox::top
