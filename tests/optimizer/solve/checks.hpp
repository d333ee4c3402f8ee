// What every plan must satisfy, whatever the problem, and small problems to try it on.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>

#include <algorithm>
#include <numeric>

#include "messages/base/rng.hpp"
#include "optimizer/model/capped.hpp"
#include "optimizer/solve/solve.hpp"

namespace signalbox::optimizer::test {

/// Whether no source that is bound by the problem's caps exceeds one.
inline bool keeps_caps(const Problem& problem, const std::vector<double>& flow_per_s) {
  const CapRoom room(problem);
  for (std::size_t s = 0; s < problem.sources.size(); ++s) {
    if (!room.binds(s)) continue;
    const Source& source = problem.sources[s];
    for (const ShareCap& cap : problem.caps) {
      std::vector<double> sum(problem.engines.size(), 0.0);
      for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
        if ((sum[cap.group[problem.pairs[i].engine.at()]] += flow_per_s[i]) >
            (cap.most + 1e-8) * source.demand_per_s)
          return false;
    }
  }
  return true;
}

/// Conservation, bounds, ceilings, and a certificate that agrees with the plan.
inline void check_feasible(const Problem& problem, const Plan& plan) {
  std::vector<double> load(problem.engines.size(), 0.0);
  for (std::size_t s = 0; s < problem.sources.size(); ++s) {
    const Source& source = problem.sources[s];
    double sum = plan.shed_per_s[s];
    BOOST_TEST(plan.shed_per_s[s] >= 0.0);
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      BOOST_TEST(plan.flow_per_s[i] >= 0.0);
      sum += plan.flow_per_s[i];
      load[problem.pairs[i].engine.at()] += plan.flow_per_s[i] * problem.pairs[i].work_s;
    }
    BOOST_TEST(std::abs(sum - source.demand_per_s) <= 1e-9 * std::max(1.0, source.demand_per_s));
  }
  for (std::size_t e = 0; e < load.size(); ++e) {
    BOOST_TEST(std::abs(load[e] - plan.load[e]) <= 1e-9);
    BOOST_TEST(load[e] <= problem.engines[e].curve.ceiling * (1.0 + 1e-9));
    BOOST_TEST(std::isfinite(plan.price[e]));
  }
  BOOST_TEST(keeps_caps(problem, plan.flow_per_s));
  double sum = 0.0;
  for (const double term : plan.terms) sum += term;
  const double size = std::max(1.0, std::abs(sum));
  BOOST_TEST(std::abs(sum - plan.certificate.objective) <= 1e-9 * size);
  BOOST_TEST(plan.certificate.lower_bound <= plan.certificate.objective + 1e-9 * size);
}

inline Plan solved(const Problem& problem, double gap = 1e-4, const WarmState& warm = {}) {
  SolveOptions options;
  options.target_gap = gap;
  auto plan = solve(problem, options, warm);
  BOOST_REQUIRE_MESSAGE(plan.has_value(), (plan ? std::string() : plan.error().text()));
  check_feasible(problem, *plan);
  return std::move(*plan);
}

/// A problem built by hand: engines of (q, capacity, ceiling), sources of (demand, shed cost), and every pair with its cost and work 0.1.
class Sketch {
 public:
  Sketch& engine(double q, double capacity, double ceiling) {
    problem_.engines.push_back({{q, capacity, ceiling}});
    return *this;
  }
  Sketch& source(double demand, double shed_cost, std::vector<double> costs, double work = 0.1) {
    Source s{ClusterIndex(problem_.sources.size()), ClassIndex(0), demand, shed_cost, 0.0, 0.0, 0, 0};
    s.first_pair = static_cast<std::uint32_t>(problem_.pairs.size());
    for (std::size_t e = 0; e < costs.size(); ++e)
      if (std::isfinite(costs[e])) problem_.pairs.push_back({EngineIndex(e), costs[e], work});
    s.pair_count = static_cast<std::uint32_t>(problem_.pairs.size()) - s.first_pair;
    problem_.sources.push_back(s);
    return *this;
  }
  Problem take() const { return problem_; }

 private:
  Problem problem_;
};

/// Up to 6 sources and 12 engines of all sizes, some gone, some tied, some overloaded.
inline Problem random_problem(Rng& rng) {
  Sketch sketch;
  const std::size_t engines = 1 + rng.below(12), sources = 1 + rng.below(6);
  const bool ties = rng.chance(0.3);
  for (std::size_t e = 0; e < engines; ++e) {
    const double capacity = ties ? 1.0 : rng.uniform(0.3, 1.0);
    sketch.engine(ties ? 20.0 : rng.lognormal(3.0, 0.7), capacity,
                  rng.chance(0.1) ? 0.0 : capacity * (ties ? 0.85 : rng.uniform(0.5, 0.95)));
  }
  const double load = rng.uniform(0.2, 1.4);
  for (std::size_t s = 0; s < sources; ++s) {
    const double work = rng.uniform(0.02, 0.2);
    std::vector<double> costs;
    for (std::size_t e = 0; e < engines; ++e)
      costs.push_back(rng.chance(0.7) ? (ties ? 0.0 : rng.uniform(-0.05, 0.2)) : std::nan(""));
    sketch.source(load * double(engines) / double(sources) / work * rng.uniform(0.3, 1.2),
                  rng.uniform(20.0, 300.0), costs, work);
  }
  return sketch.take();
}

inline std::vector<std::uint32_t> each_alone(std::size_t engines) {
  std::vector<std::uint32_t> out(engines);
  std::iota(out.begin(), out.end(), 0u);
  return out;
}

/// Groups of `size` engines that follow each other.
inline std::vector<std::uint32_t> neighbours(std::size_t engines, std::size_t size) {
  std::vector<std::uint32_t> out;
  for (std::size_t e = 0; e < engines; ++e) out.push_back(static_cast<std::uint32_t>(e / size));
  return out;
}

/// Of engines, of pairs and of sixes.
inline std::vector<ShareCap> random_caps(const Problem& problem, Rng& rng) {
  const std::size_t engines = problem.engines.size();
  return {{each_alone(engines), rng.uniform(0.2, 1.0)},
          {neighbours(engines, 2), rng.uniform(0.3, 1.0)},
          {neighbours(engines, 6), rng.uniform(0.5, 1.0)}};
}

}  // namespace signalbox::optimizer::test
