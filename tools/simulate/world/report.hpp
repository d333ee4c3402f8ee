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
  double planned = 0;  ///< share of all planned requests that the snapshots in force give it
  double served = 0;   ///< share of the requests that were sent since the last sample
  std::uint32_t running = 0, waiting = 0;
  double kv_usage = 0;
};

/// What the snapshot in force says of one class in one cluster.
struct PlannedRow {
  ClusterName cluster;
  ClassIndex request_class;
  double rate_per_s = 0;        ///< planned for and admitted
  std::vector<double> weights;  ///< by engine
};

struct SampleRow {
  Instant at;
  std::vector<EngineSample> engines;
  std::vector<PlannedRow> planned;  ///< ascending (cluster, class)
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

struct Report {
  std::string scenario;
  std::uint64_t seed = 0;
  Duration duration{};
  std::vector<std::string> engines, loads;
  std::vector<SampleRow> samples;
  std::vector<Phase> phases;
  /// By phase but the first: every engine's planned share, at the phase's mean demand, so that only weights move it.
  std::vector<std::vector<WeightAnswer>> answers;
  std::uint64_t events = 0, messages = 0, snapshots = 0;
  std::vector<std::string> warnings;  ///< the first of the fleet's own log
};

/// Each engine's share of all planned requests over time, if the demand of each class in each cluster were its mean over
/// these samples.
std::vector<std::vector<Sample>> planned_shares(std::span<const SampleRow> samples);

/// Collects outcomes while the world runs.
class Recorder {
 public:
  /// `scenario` outlives it.
  explicit Recorder(const Scenario& scenario);

  void record(const Outcome& outcome);
  /// Requests sent to each engine since the last call, as shares.
  std::vector<double> take_sent_shares();
  void sample(SampleRow row) { samples_.push_back(std::move(row)); }
  /// Everything but the counters of the world itself.
  Report report() const;

 private:
  struct Collected {
    PhaseLoad counts;
    std::vector<double> ttft_s, e2e_s;
  };
  std::size_t phase_of(Instant at) const;

  const Scenario& scenario_;
  std::vector<Instant> phase_starts_;
  std::vector<std::vector<Collected>> phases_;  ///< by phase, load
  std::vector<double> sent_;
  std::vector<SampleRow> samples_;
};

/// A happening in words: "engine e1 takes 3 times as long".
std::string describe(const Happening& happening);

}  // namespace signalbox::simulate
