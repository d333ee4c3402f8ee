#include "tools/observe/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tools/cli/feed.hpp"
#include "tools/cli/observer.hpp"
#include "tools/fleet_view/show.hpp"
#include "tools/observe/interrupt.hpp"
#include "tools/observe/printer.hpp"

namespace signalbox::observe {
namespace {

using fleet_view::FleetView;
using fleet_view::Table;

/// One row of the table behind `inspect`: what to listen to, when that is enough, and what to show.
struct Inspection {
  std::vector<std::string> topics;
  bool (*enough)(const FleetView&, const config::Config&);
  std::vector<Table> (*show)(const FleetView&, const fleet_view::Timeline&, Instant, const InspectOptions&);
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

constexpr std::array<Subject, 12> all_subjects{{
    {"snapshot", "weights, admit fractions and prices in force, by cluster"},
    {"weights",
     "the weights alone; with --engine or --cluster why: prices, limits that bind, what unused engines would "
     "need, costs, change"},
    {"engines", "verdict, load, speed and share of each engine"},
    {"routers", "what each router serves by and is asked for"},
    {"leader", "who plans, in which term, how fresh its plan is"},
    {"policy", "the policy in force and its classes"},
    {"demand", "requests and tokens a second by cluster and class, and what is admitted"},
    {"cache", "KV memory and prefix caches of the engines"},
    {"health", "every monitor's word on every engine, its evidence, and what changed"},
    {"processes", "every process that beats"},
    {"calibration", "latencies and loads that plans expected, and those that came"},
    {"alerts", "what is raised now"},
}};

const std::vector<std::string> plan_topics{"snapshot/", "fleet/", "policy/"};

using Timeline = fleet_view::Timeline;
using Options = InspectOptions;

Inspection inspection_of_plan(std::string_view what) {
  if (what == "snapshot")
    return {plan_topics, knows_snapshots,
            [](const FleetView& view, const Timeline&, Instant now, const Options& o) {
              return show_snapshots(view, now, ClusterName(o.cluster));
            }};
  if (what == "weights")
    return {plan_topics, knows_snapshots,
            [](const FleetView& view, const Timeline&, Instant now, const Options& o) {
              return show_weights(view, now, EngineName(o.engine), ClusterName(o.cluster));
            }};
  if (what == "demand")
    return {{"snapshot/", "fleet/", "policy/", "demand/"},
            [](const FleetView& view, const config::Config& config) {
              return knows_snapshots(view, config) && !view.demands.empty();
            },
            [](const FleetView& view, const Timeline&, Instant now, const Options&) {
              return show_demand(view, now);
            }};
  return {{"policy/"},
          [](const FleetView& view, const config::Config&) { return view.policy.has_value(); },
          [](const FleetView& view, const Timeline&, Instant now, const Options&) {
            return show_policy(view, now);
          }};
}

Inspection inspection_of_engines(std::string_view what) {
  if (what == "engines")
    return {{"snapshot/", "fleet/", "policy/", "signal/", "verdict/", "outcome/"},
            knows_engines,
            [](const FleetView& view, const Timeline&, Instant now, const Options&) {
              return show_engines(view, now);
            }};
  if (what == "cache")
    return {{"signal/", "cache/", "sent/", "fleet/"},
            [](const FleetView& view, const config::Config& config) {
              return view.signals.size() >= config.engines.size();
            },
            [](const FleetView& view, const Timeline&, Instant now, const Options&) {
              return show_cache(view, now);
            }};
  return {{"verdict/"},
          [](const FleetView& view, const config::Config& config) {
            return std::all_of(config.engines.begin(), config.engines.end(),
                               [&](const auto& engine) { return view.verdict(engine.name) != nullptr; });
          },
          [](const FleetView& view, const Timeline& timeline, Instant now, const Options&) {
            std::vector<Table> tables = show_health(view, now);
            Table changes = timeline.table(now);
            std::erase_if(changes.rows,
                          [](const auto& row) { return std::get<std::string>(row[3]).empty(); });
            if (!changes.rows.empty()) tables.push_back(std::move(changes));
            return tables;
          }};
}

Inspection inspection_of_processes(std::string_view what) {
  const auto all_beat = [](const FleetView& view, const config::Config& config) {
    return beats_of(view, config, {});
  };
  if (what == "leader")
    return {{"beat/", "alive/", "snapshot/"},
            [](const FleetView& view, const config::Config& config) {
              return view.leader() != nullptr && !view.keep_alives.empty() && !view.snapshots.empty() &&
                     beats_of(view, config, {"global-optimizer", "feedback-balancer"});
            },
            [](const FleetView& view, const Timeline&, Instant now, const Options&) {
              return show_leader(view, now);
            }};
  if (what == "routers")
    return {{"beat/", "receipt/", "demand/", "outcome/"},
            [](const FleetView& view, const config::Config& config) {
              return beats_of(view, config, {"cluster-router"}) &&
                     view.demands.size() == view.outcomes.size() && !view.demands.empty();
            },
            [](const FleetView& view, const Timeline&, Instant now, const Options&) {
              return show_routers(view, now);
            }};
  if (what == "processes")
    return {{"beat/"}, all_beat, [](const FleetView& view, const Timeline&, Instant now, const Options&) {
              return show_processes(view, now);
            }};
  if (what == "calibration")
    return {{"calibration/", "fleet/", "policy/"},
            [](const FleetView& view, const config::Config&) { return !view.calibrations.empty(); },
            [](const FleetView& view, const Timeline&, Instant now, const Options&) {
              return show_calibration(view, now);
            }};
  return {
      {"alert/", "beat/"}, all_beat, [](const FleetView& view, const Timeline&, Instant now, const Options&) {
        return show_alerts(view, now);
      }};
}

Inspection inspection_of(std::string_view what) {
  for (const std::string_view plan : {"snapshot", "weights", "demand", "policy"})
    if (what == plan) return inspection_of_plan(what);
  for (const std::string_view engines : {"engines", "cache", "health"})
    if (what == engines) return inspection_of_engines(what);
  return inspection_of_processes(what);
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
  return as_text(tables, options.width.value_or(terminal_width()));
}

/// Prints again and again; on a terminal each time from its top.
Status watch(cli::Source source, const Inspection& inspection, const InspectOptions& options) {
  const cli::Fleet fleet = source.fleet;
  auto feed = cli::Feed::start(std::move(source), {inspection.topics, 1.0, false, {}, {}});
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
    if (terminal_width() > 0) fmt::print("\033[H\033[2J");
    fmt::print("{}{}", *text, options.json || terminal_width() > 0 ? "" : "\n");
    if (std::fflush(stdout) != 0) return {};
    pause(from_seconds(*options.watch_s));
  }
  return {};
}

}  // namespace

std::span<const Subject> subjects() { return all_subjects; }

Status inspect(const InspectOptions& options) {
  auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(source.error());
  if (const Status names = check_names(options, source->fleet.config); !names) return names;
  const Inspection inspection = inspection_of(options.what);
  if (options.watch_s) return watch(std::move(*source), inspection, options);
  const auto seen =
      cli::observe(*source, inspection.topics, from_seconds(options.wait_s),
                   [&](const FleetView& v) { return inspection.enough(v, source->fleet.config); });
  if (!seen) return tl::unexpected(seen.error());
  const std::vector<Table> tables = inspection.show(seen->view, seen->timeline, seen->now, options);
  const auto text = printed(tables, options);
  if (!text) return tl::unexpected(text.error());
  fmt::print("{}", *text);
  const bool needs_rows = options.what != "weights" && options.what != "alerts";
  if (needs_rows && tables.front().rows.empty())
    return fail(ErrorKind::conflict,
                fmt::format("nothing of '{}' was heard within {:.1f} s", options.what, options.wait_s), {},
                "'signalbox inspect processes' shows who is there");
  return {};
}

}  // namespace signalbox::observe
