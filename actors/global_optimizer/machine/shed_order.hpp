// What refusing costs, so that the cheapest plan is also one that refuses in the policy's order.
#pragma once

#include "cluster-config/policy/compiled.hpp"
#include "optimizer/model/problem.hpp"

namespace signalbox::global_optimizer {

/// A class's place in the policy's shed order; what the order does not name is refused last.
std::size_t shed_turn(const policy::CompiledPolicy& policy, ClassIndex c);

/// Raises what the sources' refusals cost above the policy's figures where these would break its order. An engine that is full serves
/// whoever pays most for a second of its time, and a request that asks for much work pays little: so each class must outbid, on every
/// engine, all classes that the policy refuses before it, and each floor must outbid everything above the floors.
void keep_shed_order(const policy::CompiledPolicy& policy, optimizer::Problem& problem);

}  // namespace signalbox::global_optimizer
