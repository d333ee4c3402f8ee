#include "tools/simulate/world/network.hpp"

namespace signalbox::simulate {

Network::Network(const config::Config& config, double jitter, Rng rng, Duration local)
    : jitter_(jitter), rng_(rng), local_(local) {
  for (const config::Link& link : config.links) round_trips_[{link.from, link.to}] = link.rtt;
}

void Network::set_round_trip(const ClusterName& from, const ClusterName& to, Duration round_trip) {
  round_trips_[{from, to}] = round_trip;
}

Duration Network::round_trip(const ClusterName& from, const ClusterName& to) const {
  const auto found = round_trips_.find({from, to});
  return found == round_trips_.end() ? 2 * local_ : found->second + 2 * local_;
}

Duration Network::one_way(const ClusterName& from, const ClusterName& to) {
  return from_seconds(to_seconds(round_trip(from, to)) / 2 * (1 + jitter_ * rng_.uniform()));
}

}  // namespace signalbox::simulate
