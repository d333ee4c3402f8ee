// What the page draws over time, kept so that a page opened late shows what came before: one sample a second, and the
// latest decisions.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tools/fleet_view/view.hpp"

namespace signalbox::console {

struct Sample {
  Instant at;
  double offered_rps = 0, shed_rps = 0;
  std::optional<double> latency_s, first_byte_s, use, gap;
  std::vector<double> shares;  ///< of the planned requests, by engine or by the engines' cluster
};

/// A decision as the list shows it.
struct DecisionBrief {
  std::uint64_t number = 0;  ///< counts all decisions heard
  std::string decision, cluster, class_name, engine, outcome;
  bool refused = false;
  std::size_t attempts = 0;
  double took_s = 0;
};

class History {
 public:
  static constexpr Duration spacing = 1s;
  static constexpr std::size_t most_samples = 600, most_decisions = 1000;
  /// Fleets with more engines are sampled by cluster.
  static constexpr std::size_t most_engines = 64;

  /// To be called with every message, after the view has taken it.
  void on(const schema::Delivery& delivery, const fleet_view::FleetView& view, Instant now);

  const std::deque<Sample>& samples() const { return samples_; }
  const std::deque<DecisionBrief>& decisions() const { return decisions_; }
  std::uint64_t heard() const { return heard_; }
  /// The record of a decision that was heard, if it is still kept.
  const schema::DecisionRecord* find(const std::string& decision) const;
  /// What the shares of samples are of.
  std::vector<std::string> labels(const fleet_view::FleetView& view) const;
  static bool by_cluster(const fleet_view::FleetView& view);

 private:
  std::deque<Sample> samples_;
  std::deque<DecisionBrief> decisions_;
  std::deque<schema::DecisionRecord> records_;  ///< of decisions_, in the same order
  std::uint64_t heard_ = 0;
  Instant next_ = never_yet;
};

}  // namespace signalbox::console
