#include "tools/observe/follow.hpp"

#include <fmt/format.h>

#include <deque>
#include <mutex>

#include "tools/cli/observer.hpp"
#include "tools/cli/terminal.hpp"
#include "tools/fleet_view/journey.hpp"
#include "tools/observe/interrupt.hpp"

namespace signalbox::observe {
namespace {

using fleet_view::Said;

constexpr std::string_view any_decision = "next";
constexpr Duration default_wait = 10s, report_wait = 2s;
/// Kept while the one that is followed has not come: what is said in `story_before` by a large fleet.
constexpr std::size_t most_kept = 200'000;

const std::vector<std::string> topics{"policy/",   "fleet/",   "decision/", "inputs/",
                                      "snapshot/", "verdict/", "signal/",   "outcome/"};

/// The decision that is followed, if this is its record.
std::optional<std::string> followed(const TapOptions& options, const Selection& selection,
                                    const schema::Delivery& delivery, const fleet_view::RowNames& names) {
  const auto* record = std::get_if<schema::DecisionRecord>(&delivery.message);
  if (record == nullptr) return std::nullopt;
  const bool is_it =
      options.follow == any_decision ? selection.passes(delivery, names) : record->decision == options.follow;
  return is_it ? std::optional(record->decision) : std::nullopt;
}

Status print(const std::vector<Said>& said, const std::string& decision, const fleet_view::FleetView& view,
             const TapOptions& options) {
  auto table = journey(said, decision, view.names());
  if (!table) return fail(ErrorKind::internal, "the record is gone");
  table->name = options.json ? "journey" : fmt::format("journey of {}", decision);
  fmt::print("{}", options.json ? fleet_view::as_json({*table})
                                : fleet_view::as_text({*table}, cli::terminal_width()));
  return {};
}

tl::unexpected<Error> not_here(const TapOptions& options, std::string hint) {
  return fail(ErrorKind::not_found, fmt::format("'{}' did not come by", options.follow), "--follow",
              std::move(hint));
}

Status follow_recorded(const TapOptions& options, const Selection& selection) {
  auto reader = recording::Reader::open(options.replay);
  if (!reader) return tl::unexpected(reader.error());
  fleet_view::FleetView view;
  std::optional<std::string> decision;
  std::deque<Said> said;
  Instant until = end_of_time;
  while (const auto message = reader->next()) {
    if (message->arrived > until) break;
    const schema::Delivery& delivery = *message->delivery;
    if (std::holds_alternative<schema::Policy>(delivery.message) ||
        std::holds_alternative<schema::FleetTable>(delivery.message))
      view.on(delivery, message->arrived);
    if (!decision && (decision = followed(options, selection, delivery, view.names()))) {
      const auto& record = std::get<schema::DecisionRecord>(delivery.message);
      until = message->arrived + fleet_view::story_after;
      const Instant since = message->arrived - record.took - fleet_view::story_before;
      while (!said.empty() && said.front().arrived < since) said.pop_front();
    }
    said.push_back({message->arrived, message->delivery});
    // Requests take seconds to minutes; what came long before is in nobody's story.
    while (!decision && said.size() > most_kept) said.pop_front();
  }
  cli::tell_damage(*reader);
  if (!decision)
    return not_here(options, "'--replay FILE --message decision_record' shows which decisions were recorded");
  return print({said.begin(), said.end()}, *decision, view, options);
}

Status follow_live(const TapOptions& options, const Selection& selection) {
  const auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(source.error());
  std::mutex mutex;
  fleet_view::FleetView view;
  std::deque<Said> said;
  std::optional<std::string> decision;
  bus::NodeHandlers handlers;
  handlers.on_delivery = [&](schema::DeliveryPtr delivery) {
    const std::lock_guard lock(mutex);
    const Instant now = cli::monotonic_now();
    if (std::holds_alternative<schema::Policy>(delivery->message) ||
        std::holds_alternative<schema::FleetTable>(delivery->message))
      view.on(*delivery, now);
    if (!decision) decision = followed(options, selection, *delivery, view.names());
    said.push_back({now, std::move(delivery)});
    const Duration kept = decision ? 10 * fleet_view::story_before : 4 * fleet_view::story_before;
    while (said.size() > most_kept || said.front().arrived + kept < now) said.pop_front();
  };
  auto node = cli::join_source(*source, topics, std::move(handlers));
  if (!node) return tl::unexpected(node.error());
  const Instant give_up =
      cli::monotonic_now() + (options.seconds > 0 ? from_seconds(options.seconds) : default_wait);
  std::optional<Instant> found;
  while (!interrupted() && cli::monotonic_now() < (found ? *found + report_wait : give_up)) {
    {
      const std::lock_guard lock(mutex);
      if (decision && !found) found = cli::monotonic_now();
    }
    pause(50ms);
  }
  const bool there = (*node)->stats().forwarders_joined > 0 || !said.empty();
  (*node)->stop();
  if (!there) return tl::unexpected(cli::nobody_there(source->fleet));
  if (!decision)
    return not_here(
        options,
        "a tap hears what ends while it listens; 'signalbox explain' asks for what has ended before");
  return print({said.begin(), said.end()}, *decision, view, options);
}

}  // namespace

Status follow(const TapOptions& options, const Selection& selection) {
  return options.replay.empty() ? follow_live(options, selection) : follow_recorded(options, selection);
}

}  // namespace signalbox::observe
