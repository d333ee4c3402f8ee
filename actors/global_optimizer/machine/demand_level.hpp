// For how much of the demand the next plan is made. Less at once where a plan would refuse some; more only after there was room for it
// several times in a row: where the most that may come just fits or just does not, weights would go back and forth between two plans
// for very different loads.
#pragma once

#include "actors/global_optimizer/machine/planner.hpp"

namespace signalbox::global_optimizer {

class DemandLevel {
 public:
  static constexpr int fits_wanted = 5;  ///< in a row, before the plan in force is replaced by one for more

  PlannedFor next() const { return next_; }
  /// A plan for next() was solved. True: it is the one to publish. False: make one for less instead, as next() then says.
  /// `room`: it refuses nobody. `may_again`: there is time for another.
  bool take(bool room, bool may_again) {
    const bool rises = next_ < in_force_;
    if (rises) fits_ = room ? fits_ + 1 : 0;
    if ((room && (!rises || fits_ >= fits_wanted || !may_again)) || next_ == PlannedFor::sure) {
      if (rises) fits_ = 0;
      in_force_ = next_;
      if (room && next_ != PlannedFor::most) next_ = static_cast<PlannedFor>(static_cast<int>(next_) - 1);
      return true;
    }
    next_ = static_cast<PlannedFor>(static_cast<int>(next_) + 1);
    return !may_again;
  }

 private:
  PlannedFor next_ = PlannedFor::most, in_force_ = PlannedFor::most;
  int fits_ = 0;
};

}  // namespace signalbox::global_optimizer
