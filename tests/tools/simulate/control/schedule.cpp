#include "tests/tools/simulate/control/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cluster-config/load/load.hpp"
#include "messages/base/rng.hpp"
#include "tests/support/source_dir.hpp"
#include "tools/simulate/world/report.hpp"

namespace signalbox::simulate::control {
namespace {

Load load(std::string_view name, std::string_view cluster, std::string_view model, double rate,
          double output) {
  Load out;
  out.name = name;
  out.cluster = ClusterName(cluster);
  out.tenant = "acme";
  out.model = model;
  out.rate_per_s = rate;
  out.prompt = {200, 0.5};
  out.output = {output, 0.4};
  return out;
}

void add_process(config::Config& config, std::string_view like, std::string_view id) {
  config::Process process = *config.find_process(ProcessName(like));
  process.id = ProcessName(id);
  config.processes.push_back(std::move(process));
}

/// A small budget, so that it is used up.
std::string with_small_budget(std::string policy) {
  const std::string wide = "retry ratio 20% burst 50";
  const auto at = policy.find(wide);
  if (at != std::string::npos) policy.replace(at, wide.size(), "retry ratio 1% burst 1");
  return policy;
}

class Story {
 public:
  Story(Scenario& scenario, std::uint64_t seed) : scenario_(scenario), rng_(mix64(seed) ^ 0x5eed) {
    for (const config::Process& process : scenario.config.processes) names_.push_back(process.id);
  }

  void tell() {
    const std::uint64_t faults = 3 + rng_.below(6);
    for (std::uint64_t i = 0; i < faults; ++i) befall();
    std::stable_sort(scenario_.happenings.begin(), scenario_.happenings.end(),
                     [](const Happening& a, const Happening& b) { return a.at < b.at; });
  }

 private:
  void befall() {
    from_ = faults_from + from_seconds(rng_.uniform() * to_seconds(healed_at - faults_from - 2s));
    until_ = std::min(healed_at, from_ + from_seconds(rng_.uniform(1, 10)));
    switch (rng_.below(11)) {
      case 0: return during(HappeningKind::kill, anybody());
      case 1: return reborn_alone();
      case 2: return during(HappeningKind::pause, anybody());
      case 3: return isolate(anybody(), true, true);
      case 4: return rng_.chance(0.5) ? isolate(anybody(), true, false) : isolate(anybody(), false, true);
      case 5: return partition();
      case 6: return during(HappeningKind::loss, {}, rng_.uniform(0.02, 0.4));
      case 7: return during(HappeningKind::repeat, {}, rng_.uniform(0.2, 1));
      case 8: return during(HappeningKind::overtake, {}, rng_.uniform(0.02, 0.5));
      case 9:
        return rng_.chance(0.5)
                   ? during(HappeningKind::disk_full, anybody())
                   : during(HappeningKind::solver, optimizer(), static_cast<double>(1 + rng_.below(3)));
      default: return harm_an_engine();
    }
  }

  ProcessName anybody() { return names_[rng_.below(names_.size())]; }
  ProcessName optimizer() {
    for (;;) {
      const ProcessName name = anybody();
      if (scenario_.config.find_process(name)->role == "global-optimizer") return name;
    }
  }

  Happening& add(Duration at, HappeningKind kind, double value) {
    Happening& h = scenario_.happenings.emplace_back();
    h.at = at;
    h.kind = kind;
    h.value = value;
    return h;
  }
  void during(HappeningKind kind, const ProcessName& process, double value = 1) {
    add(from_, kind, value).process = process;
    add(until_, kind, 0).process = process;
  }
  void cut(const ProcessName& from, const ProcessName& to) {
    for (const auto& [at, value] : {std::pair(from_, 1.0), std::pair(until_, 0.0)}) {
      Happening& h = add(at, HappeningKind::cut, value);
      h.process = from;
      h.peer = to;
    }
  }
  void isolate(const ProcessName& process, bool mute, bool deaf) {
    for (const ProcessName& other : names_) {
      if (other == process) continue;
      if (mute) cut(process, other);
      if (deaf) cut(other, process);
    }
  }
  /// It is started while nobody can tell it what has happened since.
  void reborn_alone() {
    const ProcessName process = rng_.chance(0.7) ? optimizer() : anybody();
    isolate(process, true, true);
    add(from_, HappeningKind::kill, 1).process = process;
    add(from_ + (until_ - from_) / 4, HappeningKind::kill, 0).process = process;
  }
  void partition() {
    std::vector<ProcessName> sides[2];
    for (const ProcessName& name : names_) sides[rng_.below(2)].push_back(name);
    for (const ProcessName& a : sides[0])
      for (const ProcessName& b : sides[1]) cut(a, b), cut(b, a);
  }
  void harm_an_engine() {
    const EngineName engine = scenario_.config.engines[rng_.below(scenario_.config.engines.size())].name;
    const bool slow = rng_.chance(0.3);
    const HappeningKind kind = slow               ? HappeningKind::slow
                               : rng_.chance(0.6) ? HappeningKind::down
                                                  : HappeningKind::freeze;
    add(from_, kind, slow ? 4 : 1).engine = engine;
    add(until_, kind, slow ? 1 : 0).engine = engine;
  }

  Scenario& scenario_;
  Rng rng_;
  std::vector<ProcessName> names_;
  Duration from_{}, until_{};
};

}  // namespace

Scenario control_scenario(std::uint64_t seed) {
  auto loaded = config::load(tests::source_path("cluster-config/examples/laptop.toml"));
  if (!loaded) throw std::runtime_error(loaded.error().report);
  Scenario scenario;
  scenario.name = "control";
  scenario.seed = seed;
  scenario.config = std::move(loaded->config);
  scenario.policy = with_small_budget(std::move(loaded->policy_text));
  add_process(scenario.config, "monitor", "monitor-2");
  add_process(scenario.config, "optimizer-2", "optimizer-3");
  add_process(scenario.config, "router-east", "router-east-2");
  scenario.duration = ends_at;
  scenario.warmup = settled_at;
  scenario.sample = 250ms;
  scenario.loads = {load("chat-east", "east", "m-large", 6, 25), load("chat-west", "west", "m-large", 5, 25),
                    load("small-east", "east", "m-small", 12, 20)};
  Story(scenario, seed).tell();
  return scenario;
}

std::string story_of(const Scenario& scenario) {
  std::string out = fmt::format("seed {}\n", scenario.seed);
  for (const Happening& h : scenario.happenings)
    out += fmt::format("  {:6.2f} s {}\n", to_seconds(h.at), describe(h));
  return out;
}

}  // namespace signalbox::simulate::control
