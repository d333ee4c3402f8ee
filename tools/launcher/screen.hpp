// What `signalbox up` shows in the foreground.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fleet_view/table.hpp"

namespace signalbox::launcher {

/// Writes an event with its time.
void print_event(std::string_view line);

/// The fleet on a terminal, drawn anew again and again, with the last events below.
class Screen {
 public:
  void note(std::string_view line);
  void draw(const std::vector<fleet_view::Table>& tables) const;

 private:
  std::deque<std::string> events_;
};

}  // namespace signalbox::launcher
