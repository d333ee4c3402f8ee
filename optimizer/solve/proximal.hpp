// The rows' answer to prices, kept near a centre: the smoothed dual that Newton's method climbs.
//
// Each row pays  temperature * (relative entropy of its flows to a centre).  Its best answer to prices is then unique and
// smooth: x_k = centre_k * exp((level - cost_k - work_k p_e) / temperature), with the level that makes flow and refusals the
// demand. With the centre at the last answer, this is the proximal-point method: its limit is the exact optimum whatever the
// temperature, and since the loads of the centre are already balanced, a few Newton steps answer each new centre.
//
// A group of a row's engines that is at its cap is a row of its own, whose demand is the cap.
//
// What has an upper bound (the part of the reference that is kept, what may be refused above the floor) pays the entropy of the
// room that is left as well, and follows  x = most / (1 + exp(-(level - cost) / temperature - logit of the centre)).
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"
#include "optimizer/solve/columns.hpp"
#include "optimizer/solve/overfull.hpp"

namespace signalbox::optimizer {

class Proximal {
 public:
  Proximal(const Problem& problem, double churn_cost);

  /// The columns' flows and these refusals become the centre. Every way keeps a small part of its row's demand, so that none
  /// is closed for ever.
  void centre(const Columns& columns, const std::vector<double>& shed_per_s);
  void set_temperature(std::vector<double> by_source) { temperature_ = std::move(by_source); }
  /// The rows' answer at these prices: flows, refusals, loads, slopes.
  void answer(const std::vector<double>& price);

  const std::vector<double>& flow_per_s() const { return flow_; }  ///< by column
  const std::vector<double>& shed_per_s() const { return shed_; }
  const std::vector<double>& work() const { return work_; }  ///< by engine: what the rows send there

  /// Minus the derivative of work() by the prices is  diag(sum of work * pull)  less, for each part, pull pull' / slope,
  /// where pull is by the part's columns: work times the slope of the column's flow by the part's level.
  struct Pull {
    std::uint32_t engine;
    double value, work_s;
  };
  const std::vector<Pull>& pulls() const { return pulls_; }
  struct Part {
    std::uint32_t source = 0, begin = 0, end = 0;  ///< of pulls()
    double slope = 0;
  };
  /// By source its row without the groups that are at their caps; then these groups.
  const std::vector<Part>& parts() const { return parts_; }
  double temperature(std::size_t s) const { return temperature_[s]; }
  const std::vector<double>& stiffness() const { return stiffness_; }  ///< by engine: sum of work * pull

 private:
  /// A way with an upper bound: kept reference of a column, or a refusal.
  struct Bounded {
    std::uint32_t column;  ///< refusal: none
    double most, logit;
  };
  static constexpr std::uint32_t none = UINT32_MAX;
  /// A column of a row with caps, while that is answered.
  struct Member {
    std::uint32_t column, engine;
    std::uint32_t bounded;  ///< its row of bounded_, or none
    double cost_s;          ///< less what the centre is worth
    double weight = 0,
           flow = 0;  ///< without its bounded part, at the level of the part's cheapest; at the part's level
    std::uint64_t group = 0;  ///< as Overfull wants it
  };
  void answer_row(std::size_t s, const std::vector<double>& price);
  void answer_capped_row(std::size_t s, const std::vector<double>& price);
  Part answer_part(std::size_t s, std::span<Member> members, double total, double refusal,
                   std::size_t levels);
  void add_pull(Part& part, std::uint32_t column, double flow, double pull);
  double kept_share(const Bounded& way, std::size_t s, double level) const;
  template <class Visit>
  void for_each_bounded(std::span<const Member> members, std::size_t s, bool refusable, Visit visit) const;
  double bounded_cost(const Bounded& way, std::size_t s) const;
  template <class ForEach>
  double level_with_bounds(std::size_t s, double total, double soft_level, double guess,
                           ForEach for_each) const;

  const Problem& problem_;
  double churn_cost_;
  const Columns* columns_ = nullptr;
  std::vector<double> temperature_, flow_, shed_, work_, stiffness_;
  std::vector<double> log_centre_;   ///< by column, of the share of the demand
  std::vector<double> log_refusal_;  ///< by source, of what may be refused without bound
  std::vector<Bounded> bounded_;
  std::vector<std::uint32_t> bounded_begin_;
  std::vector<double> cost_;      ///< by column, at the last prices
  std::vector<double> exponent_;  ///< scratch of one row
  std::vector<double> level_;     ///< by source: of the rows with bounds
  std::vector<Pull> pulls_;
  std::vector<Part> parts_;
  std::vector<Member> members_;
  CapRoom room_;
  Overfull overfull_;
};

}  // namespace signalbox::optimizer
