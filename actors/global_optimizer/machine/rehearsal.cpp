// What a standby does of a leader's work: it solves, and holds its plan against the one in force.
#include <fmt/format.h>

#include <algorithm>

#include "actors/global_optimizer/machine/machine.hpp"
#include "optimizer/model/keep.hpp"

namespace signalbox::global_optimizer {

namespace {

/// Rehearsals in a row that differ: the leader is a period or two behind whatever a standby hears.
constexpr std::uint64_t many_differing = 5;
/// A standby objects to what the leader keeps for its small gain only if twice as much is to be gained.
constexpr double standby_tolerance = 2;

}  // namespace

/// A standby plans as if it led: from what it hears, against the weights in force.
void Machine::rehearse(Instant now, Effects& effects) {
  rehearse_due_ = now + rehearse_periods * options_.period;
  in_flight_.reset();  // what takes longer than that is given up
  const double heard = coverage(now);
  if (!policy_ || heard < policy_->lead.coverage) return;
  if (weights_in_force().empty()) return;
  Facts facts = look(now, demand_level_.next());
  facts.fleet.limits.load_ceiling *= last_calibration_.headroom;  // as the leader does
  if (auto built = optimizer::build_problem(facts.fleet))
    ask_solver(std::move(facts), *std::move(built), heard, true, now, effects);
}

/// What would it move that the leader leaves?
void Machine::compare(const InFlight& flight, const optimizer::Plan& plan, Instant now, Effects& effects) {
  const auto& sources = flight.built.problem.sources;
  const bool idle =
      std::none_of(sources.begin(), sources.end(), [](const auto& s) { return s.demand_per_s > 0; });
  const double tolerance = standby_tolerance * least_gain * flight.facts.policy->objective.weights.churn;
  const bool agrees = idle || tolerance <= 0 ||
                      optimizer::keep_in_force(flight.built.problem,
                                               within_limits(flight.facts, flight.built, plan), tolerance)
                          .stands;
  differing_ = agrees ? 0 : differing_ + 1;
  alerts_.set(differing_ >= many_differing, kit::AlertName::plans_diverged,
              fmt::format("by its own plan, made {} times, {} would have moved weights that {} leaves",
                          differing_, options_.id, election_->term().optimizer),
              options_.id.str(), now, effects);
}

void Machine::rehearsed(InFlight flight, const Input& input, Instant now, Effects& effects) {
  solver_fails_ = std::holds_alternative<SolveFailed>(input);
  if (solver_fails_) {
    const auto& failed = std::get<SolveFailed>(input);
    effects.note("rehearsal_failed", fmt::format("{}: {}", failed.fault, failed.detail),
                 schema::Severity::warning);
    solved_.reset();
  } else {
    const auto& done = std::get<SolveDone>(input);
    compare(flight, done.plan, now, effects);
    solved_ = Solved{std::move(flight.built.problem), done.plan};
  }
}

}  // namespace signalbox::global_optimizer
