// One experiment: a fleet, its policy, the load on it, and what happens meanwhile. Read from TOML by tools/simulate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster-config/schema/topology.hpp"
#include "messages/base/criticality.hpp"
#include "messages/base/described.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "tools/simulate/world/content.hpp"

namespace signalbox::simulate {

/// A length with its spread: log-normal with this mean; sigma of the logarithm, 0 for a constant.
struct Length {
  double mean_tokens = 0;
  double sigma = 0;
};

/// A request of a recorded trace; `at` counts from the trace's start.
struct TraceRow {
  Duration at{};
  Content prompt;
  std::uint32_t output_tokens = 0;
};

/// Requests of one kind that enter one cluster.
struct Load {
  std::string name;  ///< in the report
  ClusterName cluster;
  std::string tenant;
  std::string model;
  std::optional<Criticality> asked;
  double rate_per_s = 0;  ///< Poisson; unused with a trace
  Length prompt;
  Length output;
  std::uint32_t prefixes = 0;       ///< number of shared beginnings; 0: prompts share nothing
  std::uint32_t prefix_tokens = 0;  ///< of each shared beginning, before the prompt's own tokens
  std::vector<TraceRow> trace;      ///< ascending; replayed once
};

enum class HappeningKind : std::uint8_t {
  slow,
  freeze,
  down,
  demand,
  network,
  tell_network,
  kill,
  pause,
  cut,
  loss,
  repeat,
  overtake,
  disk_full,
  solver,
};

/// How late the network makes a message that it repeats or lets be overtaken.
inline constexpr Duration most_late = 2s;

struct Happening {
  Duration at{};
  HappeningKind kind = HappeningKind::slow;
  EngineName engine;
  std::string load;  ///< empty: all
  ClusterName from, to;
  ProcessName process, peer;
  double value = 0;
};

/// Whose rule routers choose engines by.
enum class RoutingRule : std::uint8_t { signalbox, least_request, p2c, sglang, llmd, dynamo, dynamo_4 };

struct Scenario {
  std::string name;
  std::uint64_t seed = 1;
  Duration duration = 300s;
  Duration warmup = 30s;  ///< requests that arrive before are not in the latencies
  Duration sample = 1s;   ///< between two samples of the weights
  config::Config config;
  std::string policy;  ///< its text
  std::vector<Load> loads;
  std::vector<Happening> happenings;  ///< ascending
  double network_jitter = 0.05;       ///< each message takes up to this share longer
  Duration solve_time = 20ms;         ///< what a solve is taken to take
  double step_noise = 0.05;           ///< of the engines
  RoutingRule rule = RoutingRule::signalbox;
};

/// Puts that control plane in the place of the fleet's own: the legacy balancer runs alone, in the place of the first
/// optimizer; a fleet that has it gets one optimizer.
void use_control(Scenario& scenario, config::ControlKind kind);
/// So many routers in each cluster that has one.
void use_routers(Scenario& scenario, std::size_t per_cluster);
/// All loads come so many times as fast.
void use_pace(Scenario& scenario, double factor);

}  // namespace signalbox::simulate

template <>
struct signalbox::EnumTable<signalbox::simulate::RoutingRule> {
  static constexpr std::array rows{
      EnumRow{"signalbox",
              "the least marginal cost, with retries, queues and the plan: what production does"},
      EnumRow{"least_request", "the fewest requests in flight from the router"},
      EnumRow{"p2c", "the fewer of two drawn at random"},
      EnumRow{"sglang", "sglang's cache_aware with its defaults"},
      EnumRow{"llmd", "llm-d's scorers: prefix 3, queue 2, KV 2"},
      EnumRow{"dynamo", "Dynamo's KV router, overlap weight 1"},
      EnumRow{"dynamo_4", "the same, overlap weight 4"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::simulate::HappeningKind> {
  static constexpr std::array rows{
      EnumRow{"slow", "an engine's steps take `value` times as long"},
      EnumRow{"freeze", "an engine makes no progress; 0: it goes on"},
      EnumRow{"down", "an engine's process is gone; 0: it is started anew, empty"},
      EnumRow{"demand", "the rate of a load (or of all) is multiplied by `value`"},
      EnumRow{"network", "the round trip from one cluster to another becomes `value` seconds"},
      EnumRow{"tell_network", "an operator orders the optimizers to reckon with that round trip"},
      EnumRow{"kill", "a process of the fleet is gone; 0: it is started with what it kept"},
      EnumRow{"pause", "a process stands still; 0: it goes on, with all that it missed"},
      EnumRow{"cut", "nothing passes from a process to `peer` (none: to anybody); 0: it passes again"},
      EnumRow{"loss", "this share of all messages is lost"},
      EnumRow{"repeat", "this share of all messages comes twice"},
      EnumRow{"overtake", "this share of all messages comes late, and later ones before it"},
      EnumRow{"disk_full", "a process cannot write; 0: it can"},
      EnumRow{"solver", "an optimizer's solver: 1 hangs, 2 fails, 3 answers nonsense; 0: it solves"},
  };
};
