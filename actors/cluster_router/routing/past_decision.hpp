// What a decision read, as a message, and the decision made again from it.
#pragma once

#include <memory>
#include <vector>

#include "actors/cluster_router/routing/decide.hpp"
#include "actors/cluster_router/routing/recalled.hpp"
#include "messages/base/result.hpp"
#include "messages/schema/inputs.hpp"

namespace signalbox::routing {

/// Everything that decide() read for this decision. Allocates, linear in the class's engines. The decision's id, its
/// cluster and its attempt are the caller's to fill in.
schema::DecisionInputs inputs_of(const Surroundings& around, const Ask& ask, const Tried& tried, Instant now,
                                 std::uint64_t seed, const Decision& decision);

/// The candidates of a decision as rows, in the order in which they were considered.
std::vector<schema::CandidateRow> candidate_rows(const Decision& decision, const View& view, Instant now);

/// A past decision with all that it rests on.
class PastDecision {
 public:
  /// `policy` must be the one that the inputs name. Errors: invalid for inputs that do not add up, conflict for another
  /// policy.
  static Result<PastDecision> recall(const schema::DecisionInputs& inputs,
                                     std::shared_ptr<const policy::CompiledPolicy> policy);

  /// Decides again.
  Decision decide() const;
  /// The candidates of such a decision.
  std::vector<schema::CandidateRow> rows(const Decision& decision) const {
    return candidate_rows(decision, view_, now_);
  }
  /// What this request would have cost on an engine of the inputs.
  schema::CandidateRow cost_on(EngineIndex engine) const;

 private:
  Recalled around() const { return {view_, loads_, penalties_, cache_}; }

  View view_;
  RecalledLoads loads_;
  RecalledPenalties penalties_;
  RecalledCache cache_;
  std::vector<std::uint64_t> blocks_;
  Ask ask_;
  Tried tried_;
  Instant now_;
  std::uint64_t seed_ = 0;
};

}  // namespace signalbox::routing
