// The small fleet's plan for a demand that was reported, without bus or solver child.
#pragma once

#include <boost/test/unit_test.hpp>

#include "actors/global_optimizer/machine/demand.hpp"
#include "actors/global_optimizer/machine/planner.hpp"
#include "optimizer/solve/solve.hpp"
#include "tests/support/small_fleet.hpp"

namespace signalbox::global_optimizer::testing {

struct Planned {
  Facts facts;
  optimizer::BuiltProblem built;
  optimizer::Plan plan;
};

inline kit::TablePtr shared_table(schema::FleetTable table = tests::small_table()) {
  return std::make_shared<const schema::FleetTable>(std::move(table));
}
inline kit::PolicyPtr shared_policy(policy::CompiledPolicy policy = tests::small_policy()) {
  return std::make_shared<const policy::CompiledPolicy>(std::move(policy));
}

inline Planned solve_for(Facts facts) {
  auto built = optimizer::build_problem(facts.fleet);
  BOOST_REQUIRE_MESSAGE(built.has_value(), (built ? "" : built.error().text()));
  auto plan = optimizer::solve(built->problem, {}, {});
  BOOST_REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : plan.error().text()));
  return {std::move(facts), *std::move(built), *std::move(plan)};
}

inline const Incarnation router{1, 1};

/// What a cluster's router reports of half a second.
inline schema::DemandReport report_of(const ClusterName& cluster, const Digest& policy, std::uint64_t offered,
                                      std::uint64_t prompt, std::uint64_t output) {
  schema::DemandReport out{cluster, policy, 500ms, {}, {}};
  out.rows.push_back({.request_class = ClassIndex(0),
                      .offered = offered,
                      .prompt_tokens = offered * prompt,
                      .output_tokens = offered * output,
                      .finished = offered});
  return out;
}

}  // namespace signalbox::global_optimizer::testing
