// The network between clusters: declared round trips, changed by happenings, with jitter.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "cluster-config/schema/topology.hpp"
#include "messages/base/rng.hpp"

namespace signalbox::simulate {

/// What goes wrong between processes.
struct LinkFaults {
  double loss = 0, repeat = 0, overtake = 0;             ///< shares of all messages
  std::set<std::pair<ProcessName, ProcessName>> cuts{};  ///< from, to; an empty `to` is everybody

  bool is_cut(const ProcessName& from, const ProcessName& to) const {
    return cuts.contains({from, to}) || cuts.contains({from, ProcessName()});
  }
};

class Network {
 public:
  /// Within a cluster a message takes about `local`.
  Network(const config::Config& config, double jitter, Rng rng, Duration local = 100us);

  void set_round_trip(const ClusterName& from, const ClusterName& to, Duration round_trip);
  Duration round_trip(const ClusterName& from, const ClusterName& to) const;
  /// One way, with jitter; draws.
  Duration one_way(const ClusterName& from, const ClusterName& to);

 private:
  std::map<std::pair<ClusterName, ClusterName>, Duration> round_trips_;
  double jitter_;
  Rng rng_;
  Duration local_;
};

}  // namespace signalbox::simulate
