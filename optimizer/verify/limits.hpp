// The limits of the policy that shape whole rows: caps of engines and domains, spread, survival. Each is asked for where it can be held
// by the engines that may serve now, which is decided here, too.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cluster-config/policy/compiled.hpp"
#include "messages/schema/fleet_table.hpp"
#include "optimizer/verify/verify.hpp"

namespace signalbox::verify {

/// An engine that a class may use now.
struct Place {
  EngineIndex engine;
  double weight = 0;
  double fair = 0;    ///< its weight if the class went to all of its engines by what they can serve
  double work_s = 0;  ///< of one request
};

/// What one cluster sends of one class.
struct Sent {
  ClusterName cluster;
  ClassIndex of;
  double rate_per_s = 0;
  std::vector<Place> places;
};

/// `ceiling`: engine time that may be asked of each engine.
struct Rows {
  const policy::CompiledPolicy& policy;
  const schema::FleetTable& table;
  const std::vector<double>& ceiling;
  std::vector<Sent> sent;
  std::span<const Before> before;
};

void check_limits(const Rows& rows, const std::function<void(Fault, std::string)>& found);

}  // namespace signalbox::verify
