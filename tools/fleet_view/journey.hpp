// One request's way through the fleet, from what all processes said around it.
#pragma once

#include <vector>

#include "messages/schema/catalog.hpp"
#include "tools/fleet_view/fields.hpp"
#include "tools/fleet_view/table.hpp"

namespace signalbox::fleet_view {

/// A message, and when it arrived by the listener's clock.
struct Said {
  Instant arrived;
  schema::DeliveryPtr delivery;
};

/// How long before a request's arrival, and after its end, messages can belong to its story.
inline constexpr Duration story_before = 15s, story_after = 3s;

/// The latest plan, verdict and signal that it was decided by, its decisions and attempts, and the reports that count it, in
/// order, with times since its arrival. `said` holds the record itself too, in the order of arrival; names are looked up
/// in its tables. Nothing if `said` has no record of that decision.
std::optional<Table> journey(const std::vector<Said>& said, const std::string& decision,
                             const RowNames& names);

}  // namespace signalbox::fleet_view
