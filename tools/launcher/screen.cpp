#include "tools/launcher/screen.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "tools/cli/terminal.hpp"

namespace signalbox::launcher {
namespace {

constexpr std::size_t most_events = 3;

std::string stamped(std::string_view line) {
  const auto now = std::chrono::system_clock::now();  // wall time: for people
  return fmt::format("{:%H:%M:%S} {}", fmt::localtime(std::chrono::system_clock::to_time_t(now)), line);
}

}  // namespace

void print_event(std::string_view line) { cli::put(stdout, stamped(line) + "\n"); }

void Screen::note(std::string_view line) {
  print_event(line);
  events_.push_back(stamped(line));
  if (events_.size() > most_events) events_.pop_front();
}

void Screen::draw(const std::vector<fleet_view::Table>& tables) const {
  constexpr std::string_view clear_and_home = "\x1b[H\x1b[2J", footer = "Ctrl-C stops the fleet\n";
  std::string text(clear_and_home);
  text += fleet_view::as_text(tables) + "\n";
  for (const std::string& event : events_) text += event + "\n";
  cli::put(stdout, text + std::string(footer));
}

}  // namespace signalbox::launcher
