// The policy's `survive`: what is published of critical classes is spread so that the routers, who leave dead engines out and
// divide their share among the others of the row, can carry on when a failure domain is lost, before there is a new plan.
//
// A row sends x_e there, a share m_D of it to domain D. When D is lost, engine e outside of it gets x_e / (1 - m_D). Promised is
//
//     sum over rows of  work_e x_e / (1 - M_e)  <=  load ceiling of e,        M_e = the greatest m_D of the row, e outside of D
//
// for every engine: whichever one domain is lost, and even if every row lost its own worst. Other classes are refused then, if they must
// be. It is promised as long as it would hold if critical classes went to all of their engines by capacity, and that would keep the
// other limits of their rows: where not, the alert limit-not-held says so. Rows whose engines all lie in one domain have nowhere to
// go: for them it is as if that domain were never lost.
#pragma once

#include <memory>
#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// Mixes into critical rows as much of a distribution by capacity as it takes; other classes make room: their requests go to engines of
/// their rows that have some, and what finds none stays for refuse_what_is_too_much(). `plan`: all clusters, in the table's order.
void hold_survival(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts);

/// Whether the plan survives what it could survive.
bool keeps_survival(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts);

class Survival;

/// Asks of a plan whether survival forbids to move a little of one row.
class SurvivalProbe {
 public:
  SurvivalProbe(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts);
  ~SurvivalProbe();
  /// Whether what the plan promises would be lost if `step` of the row's requests went to `to` in place of `from`.
  bool forbids(std::size_t snapshot, ClassIndex c, EngineIndex from, EngineIndex to, double step) const;
  /// That is done: what is asked next is asked of the plan with it.
  void move(std::size_t snapshot, ClassIndex c, EngineIndex from, EngineIndex to, double step);

 private:
  std::unique_ptr<Survival> survival_;
};

}  // namespace signalbox::global_optimizer
