// The flows: Gauss-Seidel sweeps over the sources, columns added by price.
#pragma once

#include <vector>

#include "optimizer/model/capped.hpp"
#include "optimizer/model/plan.hpp"
#include "optimizer/model/problem.hpp"
#include "optimizer/solve/columns.hpp"
#include "optimizer/solve/engine_state.hpp"
#include "optimizer/solve/overfull.hpp"

namespace signalbox::optimizer {

class Primal {
 public:
  explicit Primal(const Problem& problem);

  /// Starts from these flows by PairIndex, scaled row by row so that flow and shed make up the demand. Flows below
  /// `least_share` of their row's demand are left out. Rows without any flow stay empty.
  void start_from(std::span<const double> flow_per_s, std::span<const double> shed_per_s, double least_share);
  /// One pass over all pairs at these prices: the exact dual value; adds the columns that cost at most cost_shares(margin) more
  /// than their row's cheapest, and drops the dearer ones with less flow than `least_share` of their row's demand.
  double price_and_extend(const std::vector<double>& price, double margin, double least_share);
  /// By source: a share of what its last request cost at the last prices, such that all together they are that share of `value`.
  std::vector<double> cost_shares(double share, double value) const;
  /// One pass over the rows: each is balanced exactly against what the others leave on the engines.
  void sweep();
  /// Sums the loads anew (they drift by rounding).
  void recount_loads();

  /// The plan's objective at the current flows, congestion continued above the ceilings.
  double objective() const;

  /// By engine what one more second of its work is worth to those who use it, as they were last balanced; of idle ones what it costs. Of problems with caps only.
  std::vector<double> prices_paid() const;

  EngineStates& engines() { return engines_; }
  Columns& columns() { return columns_; }
  std::vector<double>& shed_per_s() { return shed_; }
  bool churn() const { return churn_cost_ > 0.0; }

 private:
  /// A column while its row is being balanced.
  struct Candidate {
    std::uint32_t column, engine;
    double cost_s, inverse_work;
    double others;               ///< load of the other rows
    double reference;            ///< requests/s; 0 without churn
    double enter;                ///< the level at which it starts to take flow
    double flow = 0, level = 0;  ///< its own, and what one more request of its part of the row costs
    std::uint64_t group = 0;     ///< as Overfull wants it
  };
  struct Wanted {
    double rate, protected_rate;
    bool refusable;
    double most_level;  ///< where it may not be refused: no level is above
  };
  void note_paid(const Candidate& candidate);
  double served(std::span<const Candidate> part, double level, double& softness) const;
  double level_for(std::span<const Candidate> part, double wanted, double low, double high,
                   double guess) const;
  double put(std::span<Candidate> part, double level, double wanted) const;
  double settle(const Source& source, std::span<Candidate> part, const Wanted& wanted, double guess,
                double& level) const;
  double settle_within_caps(const Source& source, std::span<Candidate> part, Wanted wanted,
                            std::size_t levels, double guess, double& level);
  double flow_at(const Candidate& candidate, double level, double& softness) const;
  void balance_row(std::size_t row);
  double marginal_to_mean(double value) const;
  void extend(double relative_margin, double least_share);

  const Problem& problem_;
  double churn_cost_;
  EngineStates engines_;
  Columns columns_, next_;
  std::vector<double> shed_;
  std::vector<double> paid_,
      paid_work_;              ///< by engine, of the last sweep: the price times the work, and the work
  std::vector<double> level_;  ///< by source: cost of its last request when it was last balanced
  std::vector<Candidate> candidates_;
  CapRoom room_;
  Overfull overfull_;
  CappedRows capped_;
  std::vector<double> last_;  ///< by source: of its dearest request within the caps, at the last prices
  std::vector<double>
      margin_;  ///< by source: how much above its cheapest a pair may cost to become a column, seconds
  std::vector<double> cost_;   ///< by PairIndex, at the last prices
  std::vector<double> least_;  ///< by source: its cheapest way, at the last prices
  std::vector<double> reach_;  ///< by engine: how much dearer it is, relatively, than the cheapest way of the
                               ///< source nearest to using it
};

}  // namespace signalbox::optimizer
