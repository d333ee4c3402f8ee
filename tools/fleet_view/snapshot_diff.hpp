// What is different between two snapshots of one cluster.
#pragma once

#include <vector>

#include "messages/schema/plan.hpp"
#include "tools/fleet_view/fields.hpp"
#include "tools/fleet_view/table.hpp"

namespace signalbox::fleet_view {

/// Less than this is no change of a weight, share or relative price.
inline constexpr double same_within = 5e-5;

/// Tables "changes" (terms of the snapshots), "weights", "admits" and "prices", with only what differs; rows are matched
/// by the names of their engine and class, so that snapshots of different fleet tables can be compared.
std::vector<Table> difference(const schema::RoutingSnapshot& before, const schema::RoutingSnapshot& after,
                              const RowNames& names);

}  // namespace signalbox::fleet_view
