// What an experiment showed: weights and load over time, latencies by load and phase, and how each engine's weight
// answered each happening.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/simulate/world/data_plane.hpp"
#include "tools/simulate/world/settling.hpp"

namespace signalbox::simulate {

/// One engine at one sample.
struct EngineSample {
  double planned = 0;  ///< share of all requests that the weights in force give it, at the run's mean demand
  double served = 0;   ///< share of the requests that were sent since the last sample
  std::uint32_t running = 0, waiting = 0;
  double kv_usage = 0;
};

/// The weights in force for one class in one cluster.
struct PlannedRow {
  ClusterName cluster;
  ClassIndex request_class;
  std::vector<double> weights;  ///< by engine
};
/// Requests by (cluster, class).
using Demand = std::map<std::pair<ClusterName, ClassIndex>, double>;

struct SampleRow {
  Instant at;
  std::vector<EngineSample> engines;
  std::vector<PlannedRow> planned;  ///< ascending (cluster, class)
  Demand offered;                   ///< since the last sample
  std::uint32_t waiting_at_routers = 0;
};

struct Quantiles {
  std::size_t count = 0;
  double mean = 0, p50 = 0, p99 = 0;
};
/// Sorts `values`.
Quantiles quantiles(std::vector<double>& values);

/// One load between two happenings.
struct PhaseLoad {
  std::size_t offered = 0, served = 0;
  std::array<std::size_t, enum_size<schema::RefuseReason>> refused{};
  std::array<std::size_t, enum_size<schema::AttemptEnd>> failed{};  ///< sent, and neither served nor refused
  Quantiles ttft_s, e2e_s;
  std::size_t refusals() const;
  std::size_t failures() const;
};
struct Phase {
  Instant from, until;
  std::string opens_with;        ///< the happening, in words; empty for the first
  std::vector<PhaseLoad> loads;  ///< by row of the scenario's loads
};

struct WeightAnswer {
  std::size_t engine = 0;
  StepAnswer answer;
};
/// How the weights answered what opened a phase.
struct PhaseAnswer {
  std::vector<WeightAnswer> engines;   ///< every engine's planned share
  std::optional<StepAnswer> together;  ///< progress of all shares from 0 to 1; nothing if they hardly moved
};

struct Report {
  std::string scenario;
  std::uint64_t seed = 0;
  Duration duration{};
  std::vector<std::string> engines, loads;
  std::vector<SampleRow> samples;
  std::vector<Phase> phases;
  std::vector<PhaseAnswer> answers;  ///< by phase but the first
  std::uint64_t events = 0, messages = 0, snapshots = 0;
  std::vector<std::string> warnings;  ///< the first of the fleet's own log
};

Demand sum_of_offered(std::span<const SampleRow> samples);
/// By engine: its share of all requests over time, if the demand were always this. Classes without weights count for
/// nobody.
std::vector<std::vector<Sample>> planned_shares(std::span<const SampleRow> samples, const Demand& demand);
/// The same at the mean demand of `phase`, from the middle of the phase before, when that had settled, to its end.
std::vector<std::vector<Sample>> shares_around(std::span<const SampleRow> samples, const Phase& before,
                                               const Phase& phase);

/// Planned shares are taken at the phase's mean demand, so that only weights move them.
PhaseAnswer answer_of(std::span<const std::vector<Sample>> shares, Instant step);

/// A weight has settled when it stays within this share of all requests from where it ends; the dead band of reversals.
inline constexpr double settle_band = 0.03;
/// The same for all weights together, as a part of their way.
inline constexpr double progress_band = 0.05;
/// Below this distance the weights have hardly moved.
inline constexpr double least_step = 0.04;

/// Collects outcomes while the world runs.
class Recorder {
 public:
  /// `scenario` outlives it.
  explicit Recorder(const Scenario& scenario);

  void record(const Outcome& outcome);
  /// Requests sent to each engine since the last call, as shares.
  std::vector<double> take_sent_shares();
  /// A request of that load came.
  void arrived(std::size_t load);
  /// Adds what came since the last sample.
  void sample(SampleRow row);
  /// Everything but the counters of the world itself.
  Report report() const;

 private:
  struct Collected {
    PhaseLoad counts;
    std::vector<double> ttft_s, e2e_s;
  };
  std::size_t phase_of(Instant at) const;
  std::vector<Phase> phases() const;

  const Scenario& scenario_;
  std::vector<Instant> phase_starts_;
  std::vector<std::vector<Collected>> phases_;  ///< by phase, load
  std::vector<double> sent_;
  std::vector<std::optional<Demand::key_type>> sources_;  ///< by load; none: the policy admits it to no class
  Demand offered_;                                        ///< since the last sample
  std::vector<SampleRow> samples_;
};

/// A happening in words: "engine e1 takes 3 times as long".
std::string describe(const Happening& happening);

}  // namespace signalbox::simulate
