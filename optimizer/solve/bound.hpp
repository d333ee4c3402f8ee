// The dual value: a lower bound for any prices, evaluated exactly against all pairs.
#pragma once

#include <vector>

#include "optimizer/model/capped.hpp"
#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// What a source's demand costs at given prices, at least.
struct RowValue {
  double cost = 0;          ///< seconds of latency per second
  double next_request = 0;  ///< cost of one more request, seconds
  double last_request =
      0;  ///< cost of the dearest request, were nothing kept or shed before the last resort, seconds
};

/// One way to spend part of a source's demand at a price.
struct Segment {
  double cost = 0, rate = 0;
};

/// The least cost of the row's demand when one request costs `cheapest` on its best engine; `kept` are its
/// churn-free segments: the reference rates, each at its pair's cost less the churn cost. Adds the shed
/// segments itself; reorders `kept`.
RowValue row_value(const Source& source, double cheapest, double churn_paid, std::vector<Segment>& kept);

/// Sum over the engines of G*(price): what the dual pays back.
double engines_conjugate(const Problem& problem, const std::vector<double>& price);

/// D(price) for a problem, within its caps; `unreachable` engines (ceiling 0) must have an infinite price. Scratch is reused
/// between calls.
class Bound {
 public:
  explicit Bound(const Problem& problem) : problem_(problem), capped_(problem) {}
  double value(const std::vector<double>& price);
  /// next_request of each source at these prices; within caps, what the dearest request costs.
  std::vector<double> source_prices(const std::vector<double>& price);
  /// last_request of each source: the scale of its costs.
  std::vector<double> source_scales(const std::vector<double>& price);

 private:
  RowValue row(const Source& source, const std::vector<double>& price);
  const Problem& problem_;
  CappedRows capped_;
  std::vector<Segment> kept_;
};

}  // namespace signalbox::optimizer
