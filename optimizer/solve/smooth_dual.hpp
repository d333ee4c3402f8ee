// The dual of the rows with every minimum replaced by a softmin: value, gradient and curvature.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"
#include "optimizer/solve/columns.hpp"

namespace signalbox::optimizer {

/// For a row with prices c_k of its columns:
///   C = softmin_k c_k,  S1 = softmin(C, shed),  S2 = softmin(C, floor shed),
///   value = free demand * S1 + protected demand * S2 + sum_k reference_k * softmin(c_k, S1 + churn).
/// Each row has its own temperature.
class SmoothDual {
 public:
  SmoothDual(const Problem& problem, const ColumnView& columns, const std::vector<double>& temperature_s);

  /// One engine's part of one row at the last evaluation: the softmin's flow there.
  struct Near {
    std::uint32_t column;
    double flow_per_s;
  };
  /// What one row does at the last evaluation. Scratch: valid until the next row.
  struct Row {
    std::vector<Near> near;    ///< columns that get flow by the softmin
    std::vector<Near> stayed;  ///< columns that keep flow of the reference
    double through_per_s = 0;  ///< sum of near
    double shed_per_s = 0;
  };

  /// Value of all rows; adds the flows' work to `work`; calls visit(source, row) for each row with demand, if
  /// given.
  template <class Visit>
  double evaluate(const std::vector<double>& price, std::vector<double>& work, Visit visit) {
    double sum = 0.0;
    for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
      if (problem_.sources[s].demand_per_s <= 0.0) continue;
      sum += evaluate_row(s, price, work);
      visit(s, row_);
    }
    return sum;
  }
  double temperature_s(std::size_t source) const { return temperature_[source]; }

 private:
  double price_row(std::size_t s, const std::vector<double>& price);
  double evaluate_row(std::size_t s, const std::vector<double>& price, std::vector<double>& work);
  double references(std::uint32_t first, std::uint32_t count, double alternative, double temperature,
                    std::vector<double>& work, double& free);

  const Problem& problem_;
  ColumnView columns_;
  const std::vector<double>& temperature_;
  std::vector<double> cost_;
  Row row_;
};

}  // namespace signalbox::optimizer
