#include "tools/observe/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tools/cli/feed.hpp"
#include "tools/cli/observer.hpp"
#include "tools/cli/terminal.hpp"
#include "tools/fleet_view/show.hpp"
#include "tools/observe/interrupt.hpp"

namespace signalbox::observe {
namespace {

using fleet_view::FleetView;
using fleet_view::Table;

using Options = InspectOptions;
using Timeline = fleet_view::Timeline;

/// What can be inspected: what to listen to, when that is enough, and what to show.
struct Inspection {
  Subject subject;
  std::vector<std::string> topics;
  bool (*enough)(const FleetView&, const config::Config&);
  std::vector<Table> (*show)(const FleetView&, const Timeline&, Instant, const Options&);
  bool may_be_empty = false;
};

bool beats_of(const FleetView& view, const config::Config& config,
              std::initializer_list<std::string_view> roles) {
  return std::all_of(config.processes.begin(), config.processes.end(), [&](const config::Process& process) {
    const bool asked =
        roles.size() == 0 || std::find(roles.begin(), roles.end(), process.role) != roles.end();
    return !asked || view.beats.contains(process.id);
  });
}

bool knows_snapshots(const FleetView& view, const config::Config& config) {
  return view.policy && view.snapshots.size() >= config.clusters.size() &&
         std::all_of(view.snapshots.begin(), view.snapshots.end(),
                     [&](const auto& entry) { return view.table(entry.second.message.table) != nullptr; });
}

bool knows_engines(const FleetView& view, const config::Config& config) {
  return knows_snapshots(view, config) &&
         std::all_of(config.engines.begin(), config.engines.end(), [&](const config::Engine& engine) {
           return view.signals.contains(engine.name) && view.verdict(engine.name) != nullptr;
         });
}

bool knows_demand(const FleetView& view, const config::Config& config) {
  return knows_snapshots(view, config) && !view.demands.empty();
}

bool knows_leader(const FleetView& view, const config::Config& config) {
  return view.leader() != nullptr && !view.keep_alives.empty() && !view.snapshots.empty() &&
         beats_of(view, config, {"global-optimizer", "feedback-balancer"});
}

bool knows_routers(const FleetView& view, const config::Config& config) {
  return beats_of(view, config, {"cluster-router"}) && view.demands.size() == view.outcomes.size() &&
         !view.demands.empty();
}

bool knows_verdicts(const FleetView& view, const config::Config& config) {
  return std::all_of(config.engines.begin(), config.engines.end(),
                     [&](const auto& engine) { return view.verdict(engine.name) != nullptr; });
}

bool knows_processes(const FleetView& view, const config::Config& config) {
  return beats_of(view, config, {});
}

std::vector<Table> show_health_and_changes(const FleetView& view, const Timeline& timeline, Instant now,
                                           const Options&) {
  std::vector<Table> tables = show_health(view, now);
  Table changes = timeline.table(now);
  std::erase_if(changes.rows, [](const auto& row) { return std::get<std::string>(row[3]).empty(); });
  if (!changes.rows.empty()) tables.push_back(std::move(changes));
  return tables;
}

/// For those that need neither the timeline nor an option.
template <std::vector<Table> (*Show)(const FleetView&, Instant)>
std::vector<Table> now_only(const FleetView& view, const Timeline&, Instant now, const Options&) {
  return Show(view, now);
}

const std::vector<Inspection>& inspections() {
  static const std::vector<Inspection> all{
      {{"snapshot", "weights, admit fractions and prices in force, by cluster"},
       {"snapshot/", "fleet/", "policy/"},
       knows_snapshots,
       [](const FleetView& view, const Timeline&, Instant now, const Options& o) {
         return show_snapshots(view, now, ClusterName(o.cluster));
       }},
      {{"weights",
        "the weights alone; with --engine or --cluster why: prices, limits that bind, what unused engines "
        "would "
        "need, costs, change"},
       {"snapshot/", "fleet/", "policy/"},
       knows_snapshots,
       [](const FleetView& view, const Timeline&, Instant now, const Options& o) {
         return show_weights(view, now, EngineName(o.engine), ClusterName(o.cluster));
       },
       true},
      {{"engines", "verdict, load, speed and share of each engine"},
       {"snapshot/", "fleet/", "policy/", "signal/", "verdict/", "outcome/"},
       knows_engines,
       now_only<fleet_view::show_engines>},
      {{"routers", "what each router serves by and is asked for"},
       {"beat/", "receipt/", "demand/", "outcome/"},
       knows_routers,
       now_only<fleet_view::show_routers>},
      {{"leader", "who plans, in which term, how fresh its plan is"},
       {"beat/", "alive/", "snapshot/"},
       knows_leader,
       now_only<fleet_view::show_leader>},
      {{"policy", "the policy in force and its classes"},
       {"policy/"},
       [](const FleetView& view, const config::Config&) { return view.policy.has_value(); },
       now_only<fleet_view::show_policy>},
      {{"demand", "requests and tokens a second by cluster and class, and what is admitted"},
       {"snapshot/", "fleet/", "policy/", "demand/"},
       knows_demand,
       now_only<fleet_view::show_demand>},
      {{"cache", "KV memory and prefix caches of the engines"},
       {"signal/", "cache/", "sent/", "fleet/"},
       [](const FleetView& view, const config::Config& config) {
         return view.signals.size() >= config.engines.size();
       },
       now_only<fleet_view::show_cache>},
      {{"health", "every monitor's word on every engine, its evidence, and what changed"},
       {"verdict/"},
       knows_verdicts,
       show_health_and_changes},
      {{"processes", "every process that beats"},
       {"beat/"},
       knows_processes,
       now_only<fleet_view::show_processes>},
      {{"calibration", "latencies and loads that plans expected, and those that came"},
       {"calibration/", "fleet/", "policy/"},
       [](const FleetView& view, const config::Config&) { return !view.calibrations.empty(); },
       now_only<fleet_view::show_calibration>},
      {{"alerts", "what is raised now"},
       {"alert/", "beat/"},
       knows_processes,
       now_only<fleet_view::show_alerts>,
       true},
  };
  return all;
}

Status check_names(const InspectOptions& options, const config::Config& config) {
  if (!options.engine.empty() && config.find_engine(EngineName(options.engine)) == nullptr)
    return fail(ErrorKind::not_found, fmt::format("the fleet has no engine '{}'", options.engine), {},
                "'signalbox inspect engines' lists them");
  if (!options.cluster.empty() && config.find_cluster(ClusterName(options.cluster)) == nullptr)
    return fail(ErrorKind::not_found, fmt::format("the fleet has no cluster '{}'", options.cluster));
  return {};
}

/// The tables as they are printed. Errors: not_found for a column.
Result<std::string> printed(std::vector<Table> tables, const InspectOptions& options) {
  if (!options.filter.empty())
    if (const Status kept = keep_rows(tables, options.filter); !kept) return tl::unexpected(kept.error());
  if (!options.sort.empty())
    if (const Status sorted = sort_by(tables, options.sort); !sorted) return tl::unexpected(sorted.error());
  if (options.json) return as_json(tables);
  return as_text(tables, options.width.value_or(cli::terminal_width()));
}

/// Prints again and again; on a terminal each time from its top.
Status watch(cli::Source source, const Inspection& inspection, const InspectOptions& options) {
  const cli::Fleet fleet = source.fleet;
  auto feed = cli::Feed::start(std::move(source), {inspection.topics, 1.0, {}, {}});
  if (!feed) return tl::unexpected(std::move(feed.error()));
  catch_interrupts();
  const Instant began = cli::monotonic_now();
  bool enough = false;
  while (!interrupted()) {
    const bool waited = cli::monotonic_now() - began >= from_seconds(options.wait_s);
    enough = enough || waited || (*feed)->with([&](const FleetView& view, const Timeline&, Instant) {
      return inspection.enough(view, fleet.config);
    });
    if (waited && !(*feed)->is_there()) return tl::unexpected(cli::nobody_there(fleet));
    if (!enough) {
      pause(50ms);
      continue;
    }
    const auto text = (*feed)->with([&](const FleetView& view, const Timeline& timeline, Instant now) {
      return printed(inspection.show(view, timeline, now, options), options);
    });
    if (!text) return tl::unexpected(text.error());
    if (cli::terminal_width() > 0) fmt::print("\033[H\033[2J");
    fmt::print("{}{}", *text, options.json || cli::terminal_width() > 0 ? "" : "\n");
    if (std::fflush(stdout) != 0) return {};
    pause(from_seconds(*options.watch_s));
  }
  return {};
}

}  // namespace

std::vector<Subject> subjects() {
  std::vector<Subject> out;
  for (const Inspection& inspection : inspections()) out.push_back(inspection.subject);
  return out;
}

Status inspect(const InspectOptions& options) {
  auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(source.error());
  if (const Status names = check_names(options, source->fleet.config); !names) return names;
  const auto found =
      std::ranges::find(inspections(), options.what, [](const auto& i) { return i.subject.name; });
  if (found == inspections().end()) return invalid(fmt::format("'{}' cannot be inspected", options.what));
  const Inspection& inspection = *found;
  if (options.watch_s) return watch(std::move(*source), inspection, options);
  const auto seen =
      cli::observe(*source, inspection.topics, from_seconds(options.wait_s),
                   [&](const FleetView& v) { return inspection.enough(v, source->fleet.config); });
  if (!seen) return tl::unexpected(seen.error());
  const std::vector<Table> tables = inspection.show(seen->view, seen->timeline, seen->now, options);
  const auto text = printed(tables, options);
  if (!text) return tl::unexpected(text.error());
  fmt::print("{}", *text);
  if (!inspection.may_be_empty && tables.front().rows.empty())
    return fail(ErrorKind::conflict,
                fmt::format("nothing of '{}' was heard within {:.1f} s", options.what, options.wait_s), {},
                "'signalbox inspect processes' shows who is there");
  return {};
}

}  // namespace signalbox::observe
