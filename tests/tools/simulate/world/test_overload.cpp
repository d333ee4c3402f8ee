// Twice what the engines can serve, without a plan: what the routers' own admission makes of it, and what happens without
// the budgets that the policy gives it.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "cluster-config/load/load.hpp"
#include "tests/support/source_dir.hpp"
#include "tools/simulate/world/world.hpp"

using namespace signalbox;
using namespace signalbox::simulate;

namespace {

constexpr double before_s = 60, over_s = 160, end_s = 220;  // overload from `before_s` to `over_s`
constexpr double recovery_s = 10;
constexpr double wanted_first_byte_s = 2, wanted_answer_s = 30;
constexpr Length prompt{300, 0.4}, output{100, 0.3};

/// Everything alike but how much may be tried, queued and sent.
std::string policy_text(bool budgets) {
  return std::string(R"(policy overload version 1
models { m-large versions 1.0 }
class paid { tenants acme  model m-large  criticality critical  residency any }
class free { tenants *  model m-large  criticality sheddable  residency any }
otherwise reject 403
limits { in_flight(engine) <= 1000 }
timeouts connect 1s first_byte 4s gap 10s total 30s
)") + (budgets ? "retry ratio 20% burst 50 attempts 2\nqueue wait 1s depth 64 target 300ms\n"
               : "retry ratio 100% burst 10000 attempts 5 within 100% of deadline\n"
                 "queue wait 600s depth 100000 target 0s\n");
}

struct Seen {
  double arrived, first_byte, ended;  ///< s
  std::size_t load;
  bool served, refused;
  bool good() const {
    return served && first_byte - arrived <= wanted_first_byte_s && ended - arrived <= wanted_answer_s;
  }
};

class Experiment : public Hooks {
 public:
  Experiment() {
    auto loaded = config::load(tests::source_path("cluster-config/examples/laptop.toml"));
    BOOST_REQUIRE_MESSAGE(loaded.has_value(), (loaded ? "" : loaded.error().report));
    scenario_.name = "overload";
    scenario_.config = loaded->config;
    std::erase_if(scenario_.config.processes, [](const config::Process& p) {
      return p.role != "policy-keeper" && p.role != "engine-proxy" && p.role != "cluster-router";
    });
    scenario_.duration = from_seconds(end_s + 20);
    scenario_.warmup = 10s;
  }
  /// Requests a second in each of the two clusters, and by what factor it is multiplied during the overload.
  void add_load(const char* name, const char* tenant, double rate, double factor) {
    for (const char* cluster : {"east", "west"}) {
      Load load;
      load.name = std::string(name) + "-" + cluster;
      load.cluster = ClusterName(cluster);
      load.tenant = tenant;
      load.model = "m-large";
      load.rate_per_s = rate / 2;
      load.prompt = prompt;
      load.output = output;
      scenario_.loads.push_back(load);
      for (const auto& [at, value] : {std::pair(before_s, factor), std::pair(over_s, 1.0)}) {
        Happening h;
        h.at = from_seconds(at);
        h.kind = HappeningKind::demand;
        h.load = load.name;
        h.value = value;
        scenario_.happenings.push_back(h);
      }
    }
    std::ranges::stable_sort(scenario_.happenings, {}, &Happening::at);
  }
  void run(bool budgets) {
    scenario_.policy = policy_text(budgets);
    World world(scenario_);
    world.set_hooks(*this);
    world.run();
  }
  void ended(const Outcome& o) override {
    const auto s = [](Instant at) { return to_seconds(at.time_since_epoch()); };
    seen_.push_back({s(o.arrived), s(o.first_byte), s(o.ended), o.load, o.served(),
                     o.refused != schema::RefuseReason::none});
  }

  /// Of the loads called `name`, those that arrived in [from, until).
  std::vector<Seen> arrived(std::string_view name, double from, double until) const {
    std::vector<Seen> out;
    for (const Seen& s : seen_)
      if (scenario_.loads[s.load].name.starts_with(name) && s.arrived >= from && s.arrived < until)
        out.push_back(s);
    return out;
  }
  /// Answers completed a second, of all loads.
  double throughput(double from, double until) const {
    const auto n = std::ranges::count_if(
        seen_, [&](const Seen& s) { return s.served && s.ended >= from && s.ended < until; });
    return static_cast<double>(n) / (until - from);
  }

 private:
  Scenario scenario_;
  std::vector<Seen> seen_;
};

double goodput(const std::vector<Seen>& seen) {
  return static_cast<double>(std::ranges::count_if(seen, &Seen::good)) / static_cast<double>(seen.size());
}
double share_refused(const std::vector<Seen>& seen) {
  return static_cast<double>(std::ranges::count_if(seen, &Seen::refused)) / static_cast<double>(seen.size());
}

/// What the fleet can serve at most, in requests a second: each engine with its batch always full.
double capacity() {
  static const double measured = [] {
    const auto loaded = config::load(tests::source_path("cluster-config/examples/laptop.toml"));
    BOOST_REQUIRE(loaded.has_value());
    double sum = 0;
    for (const config::Engine& e : loaded->config.engines) {
      const config::Profile& profile = loaded->config.profile_of(e);
      if (profile.name != "large") continue;
      engine_sim::EngineOptions options;
      options.curve = {profile.a, profile.b, profile.k, profile.c};
      options.speed = e.simulated->speed;
      options.kv_blocks = static_cast<std::uint32_t>(profile.kv_tokens / options.block_tokens);
      options.max_batch = profile.max_batch;
      options.chunk_tokens = profile.prefill_chunk;
      options.step_tokens = std::max(options.chunk_tokens, options.max_batch) + options.max_batch;
      engine_sim::Engine engine(options, 1);
      std::vector<engine_sim::Event> events;
      std::uint64_t sent = 0, done = 0;
      Instant now = instant_at(Duration::zero());
      const Instant end = instant_at(300s);
      while (now < end) {
        while (sent - done < 2 * options.max_batch)
          engine.submit({.id = ++sent,
                         .prompt_tokens = static_cast<std::uint32_t>(prompt.mean_tokens),
                         .output_tokens = static_cast<std::uint32_t>(output.mean_tokens),
                         .max_output_tokens = 1'000},
                        now);
        now = engine.next_wake();
        events.clear();
        engine.on_wake(now, events);
        done += static_cast<std::uint64_t>(
            std::ranges::count(events, engine_sim::EventKind::finished, &engine_sim::Event::kind));
      }
      sum += static_cast<double>(done) / 300;
    }
    return sum;
  }();
  return measured;
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_twice_the_capacity_critical_requests_are_served_as_if_they_were_alone) {
  const double most = capacity();
  Experiment alone, contended;
  alone.add_load("paid", "acme", 0.5 * most, 1);
  alone.run(true);
  contended.add_load("paid", "acme", 0.5 * most, 1);
  contended.add_load("free", "crowd", 0.15 * most, 10);
  contended.run(true);

  const auto uncontended = goodput(alone.arrived("paid", before_s, over_s));
  const auto paid = contended.arrived("paid", before_s, over_s);
  const auto crowd = contended.arrived("free", before_s, over_s);
  const double served = contended.throughput(before_s + 10, over_s);
  BOOST_TEST_MESSAGE("capacity " << most << "/s, throughput " << served
                                 << "/s; goodput of critical requests alone " << uncontended << ", contended "
                                 << goodput(paid) << "; refused: critical " << share_refused(paid)
                                 << ", sheddable " << share_refused(crowd) << ", sheddable goodput "
                                 << goodput(crowd));
  BOOST_TEST(uncontended > 0.99);
  BOOST_TEST(goodput(paid) >= 0.99 * uncontended);
  BOOST_TEST(served >= 0.95 * most);
  BOOST_TEST(share_refused(crowd) > 0.5);

  const auto later = contended.arrived("free", over_s + recovery_s, end_s);
  BOOST_TEST(share_refused(later) == 0.0);
  BOOST_TEST(goodput(later) > 0.99);
  BOOST_TEST(goodput(contended.arrived("paid", over_s + recovery_s, end_s)) > 0.99);
}

BOOST_AUTO_TEST_CASE(without_its_budgets_the_same_fleet_collapses_under_the_same_load) {
  const double most = capacity();
  Experiment contended;
  contended.add_load("paid", "acme", 0.5 * most, 1);
  contended.add_load("free", "crowd", 0.15 * most, 10);
  contended.run(false);
  const auto paid = contended.arrived("paid", before_s + 20, over_s);
  const double served = contended.throughput(before_s + 20, over_s);
  BOOST_TEST_MESSAGE("capacity " << most << "/s, throughput " << served << "/s; goodput of critical requests "
                                 << goodput(paid));
  BOOST_TEST(goodput(paid) < 0.2);
  BOOST_TEST(served < 0.8 * most);
}
