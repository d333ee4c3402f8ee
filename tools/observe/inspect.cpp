#include "tools/observe/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tools/cli/observer.hpp"
#include "tools/fleet_view/show.hpp"

namespace signalbox::observe {
namespace {

using fleet_view::FleetView;
using fleet_view::Table;

/// One row of the table behind `inspect`: what to listen to, when that is enough, and what to show.
struct Inspection {
  std::vector<std::string> topics;
  bool (*enough)(const FleetView&, const config::Config&);
  std::vector<Table> (*show)(const FleetView&, Instant, const InspectOptions&);
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

constexpr std::array<Subject, 8> all_subjects{{
    {"snapshot", "weights, admit fractions and prices in force, by cluster"},
    {"engines", "verdict, load and speed of each engine"},
    {"leader", "who plans, in which term, how fresh its plan is"},
    {"routers", "what each router serves by and is asked for"},
    {"weights", "why an engine (--engine) has its weights: price, binding limit, where it lost"},
    {"policy", "the policy in force and its classes"},
    {"processes", "every process that beats"},
    {"alerts", "what is raised now"},
}};

Inspection inspection_of(std::string_view what) {
  const std::vector<std::string> plan{"snapshot/", "fleet/", "policy/"};
  if (what == "snapshot")
    return {plan, knows_snapshots, [](const FleetView& view, Instant now, const InspectOptions& o) {
              return show_snapshots(view, now, ClusterName(o.cluster));
            }};
  if (what == "weights")
    return {plan, knows_snapshots, [](const FleetView& view, Instant now, const InspectOptions& o) {
              return show_weights(view, now, EngineName(o.engine));
            }};
  if (what == "engines")
    return {
        {"snapshot/", "fleet/", "policy/", "signal/", "verdict/"},
        knows_engines,
        [](const FleetView& view, Instant now, const InspectOptions&) { return show_engines(view, now); }};
  if (what == "leader")
    return {{"beat/", "alive/", "snapshot/"},
            [](const FleetView& view, const config::Config& config) {
              return view.leader() != nullptr && !view.keep_alives.empty() && !view.snapshots.empty() &&
                     beats_of(view, config, {"global-optimizer", "feedback-balancer"});
            },
            [](const FleetView& view, Instant now, const InspectOptions&) { return show_leader(view, now); }};
  if (what == "routers")
    return {
        {"beat/", "receipt/", "demand/", "outcome/"},
        [](const FleetView& view, const config::Config& config) {
          return beats_of(view, config, {"cluster-router"}) && view.demands.size() == view.outcomes.size() &&
                 !view.demands.empty();
        },
        [](const FleetView& view, Instant now, const InspectOptions&) { return show_routers(view, now); }};
  if (what == "policy")
    return {{"policy/"},
            [](const FleetView& view, const config::Config&) { return view.policy.has_value(); },
            [](const FleetView& view, Instant now, const InspectOptions&) { return show_policy(view, now); }};
  if (what == "processes")
    return {
        {"beat/"},
        [](const FleetView& view, const config::Config& config) { return beats_of(view, config, {}); },
        [](const FleetView& view, Instant now, const InspectOptions&) { return show_processes(view, now); }};
  return {{"alert/", "beat/"},
          [](const FleetView& view, const config::Config& config) { return beats_of(view, config, {}); },
          [](const FleetView& view, Instant now, const InspectOptions&) { return show_alerts(view, now); }};
}

Status check_names(const InspectOptions& options, const config::Config& config) {
  if (options.what == "weights" && config.find_engine(EngineName(options.engine)) == nullptr)
    return fail(ErrorKind::not_found, fmt::format("the fleet has no engine '{}'", options.engine), {},
                "name one with --engine E; 'signalbox inspect engines' lists them");
  if (!options.cluster.empty() && config.find_cluster(ClusterName(options.cluster)) == nullptr)
    return fail(ErrorKind::not_found, fmt::format("the fleet has no cluster '{}'", options.cluster));
  return {};
}

}  // namespace

std::span<const Subject> subjects() { return all_subjects; }

Status inspect(const InspectOptions& options) {
  const auto fleet = cli::open_fleet(options.fleet);
  if (!fleet) return tl::unexpected(fleet.error());
  if (const Status names = check_names(options, fleet->config); !names) return names;
  const Inspection inspection = inspection_of(options.what);
  const auto view = cli::observe(*fleet, inspection.topics, from_seconds(options.wait_s),
                                 [&](const FleetView& v) { return inspection.enough(v, fleet->config); });
  if (!view) return tl::unexpected(view.error());
  const std::vector<Table> tables = inspection.show(*view, cli::monotonic_now(), options);
  fmt::print("{}", options.json ? as_json(tables) : as_text(tables));
  const bool needs_rows = options.what != "weights" && options.what != "alerts";
  if (needs_rows && tables.front().rows.empty())
    return fail(ErrorKind::conflict,
                fmt::format("nothing of '{}' was heard within {:.1f} s", options.what, options.wait_s), {},
                "'signalbox inspect processes' shows who is there");
  return {};
}

}  // namespace signalbox::observe
