#include "tools/top/top.hpp"

#include <fmt/format.h>

#include <optional>

#include "messages/base/enum_names.hpp"
#include "tools/cli/feed.hpp"
#include "tools/cli/observer.hpp"
#include "tools/observe/explain.hpp"
#include "tools/observe/interrupt.hpp"
#include "tools/top/terminal.hpp"

namespace signalbox::top {
namespace {

const std::vector<std::string> topics{"beat/",    "signal/", "verdict/", "fleet/",  "snapshot/", "alive/",
                                      "receipt/", "demand/", "outcome/", "policy/", "alert/"};

constexpr Duration patience = 3s, explain_patience = 5s;

/// The fleet as it was when the operator stopped the picture.
struct Frozen {
  fleet_view::FleetView view;
  Instant at;
};

std::string title_of(const cli::Source& source) {
  if (source.recording) return fmt::format("{} (recording)", source.fleet.config.fleet);
  return source.replayed ? fmt::format("{} (replay)", source.fleet.config.fleet) : source.fleet.config.fleet;
}

}  // namespace

std::vector<std::string> sort_names() { return names_of<Sort>(); }

Status top(const TopOptions& options) {
  auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(std::move(source.error()));
  const std::string title = title_of(*source);
  auto feed = cli::Feed::start(std::move(*source), {topics, options.speed, {}, {}});
  if (!feed) return tl::unexpected(std::move(feed.error()));

  const Instant began = cli::monotonic_now();
  observe::catch_interrupts();
  Ui ui;
  ui.sort = value_of<Sort>(options.sort).value_or(Sort::fleet);
  ui.filter = options.filter;
  {
    auto terminal = Terminal::open();
    if (!terminal) return tl::unexpected(std::move(terminal.error()));
    std::optional<Frozen> frozen;
    while (!observe::interrupted()) {
      const Screen screen = (*feed)->with([&](const auto& view, const auto&, Instant now) {
        if (!ui.paused) frozen.reset();
        if (ui.paused && !frozen) frozen = Frozen{view, now};
        return frozen ? draw(frozen->view, ui, title, frozen->at, terminal->size())
                      : draw(view, ui, title, now, terminal->size());
      });
      terminal->show(screen);
      if (!(*feed)->is_there() && cli::monotonic_now() - began > patience) break;
      const auto key = terminal->key(from_seconds(options.every_s));
      if (!key) continue;
      const Wish wish = ui.on_key(*key, screen.shown, screen.rows, screen.page);
      if (wish == Wish::quit) return {};
      if (wish == Wish::explain) {
        const auto text = observe::explanation_of((*feed)->source(), ui.typed, explain_patience);
        ui.explanation = text ? *text : text.error().text();
      }
    }
  }
  if (!observe::interrupted()) return tl::unexpected(cli::nobody_there((*feed)->source().fleet));
  return {};
}

}  // namespace signalbox::top
