#include "optimizer/model/keep.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::optimizer {
namespace {

/// What a reference may lack by rounding and still be whole.
constexpr double whole = 1.0 - 1e-6;
constexpr double full = 1.0 - 1e-6;

class Keeper {
 public:
  Keeper(const Problem& problem, const Plan& fresh, double tolerance)
      : problem_(problem), fresh_(fresh), tolerance_(tolerance), flow_(fresh.flow_per_s), load_(fresh.load) {
    for (std::size_t e = 0; e < problem.engines.size(); ++e) {
      const CongestionCurve& curve = problem.engines[e].curve;
      const double marginal = curve.ceiling > 0.0 ? curve.marginal(fresh.load[e]) : 0.0;
      const bool rented = fresh.load[e] >= full * curve.ceiling;
      marginal_.push_back(rented ? std::max(marginal, fresh.price[e]) : marginal);
    }
  }

  KeptPlan run() {
    for (std::size_t s = 0; s < problem_.sources.size(); ++s) {
      kept_.push_back(keepable(s));
      if (kept_[s]) put_reference(s);
    }
    for (std::size_t s = 0; s < kept_.size(); ++s)
      if (kept_[s] && row_costs_much(s)) put_fresh(s);
    while (put_fresh_where_engines_suffer()) {
    }
    return finish();
  }

 private:
  template <class Visit>
  void for_each_pair(std::size_t source, Visit visit) const {
    const Source& s = problem_.sources[source];
    for (std::size_t i = s.first_pair; i < s.first_pair + s.pair_count; ++i) visit(i, problem_.pairs[i]);
  }

  double reference_sum(std::size_t s) const {
    double sum = 0;
    for_each_pair(s, [&](std::size_t i, const Pair&) { sum += problem_.reference_per_s[i]; });
    return sum;
  }

  bool keepable(std::size_t s) const {
    const double demand = problem_.sources[s].demand_per_s;
    return demand > 0.0 && !problem_.reference_per_s.empty() && reference_sum(s) >= whole * demand;
  }

  void put_reference(std::size_t s) {
    const double admitted = problem_.sources[s].demand_per_s - fresh_.shed_per_s[s];
    const double scale = std::max(0.0, admitted) / reference_sum(s);
    for_each_pair(s, [&](std::size_t i, const Pair&) { set_flow(i, scale * problem_.reference_per_s[i]); });
  }
  void put_fresh(std::size_t s) {
    kept_[s] = false;
    for_each_pair(s, [&](std::size_t i, const Pair&) { set_flow(i, fresh_.flow_per_s[i]); });
  }
  void set_flow(std::size_t i, double flow) {
    load_[problem_.pairs[i].engine.at()] += problem_.pairs[i].work_s * (flow - flow_[i]);
    flow_[i] = flow;
  }

  /// Latency per unit of work at the fresh load.
  double mean_cost(std::size_t e) const {
    const double load = fresh_.load[e];
    const CongestionCurve& curve = problem_.engines[e].curve;
    return load > 0.0 ? curve.cost(load) / load : curve.q;
  }

  bool row_costs_much(std::size_t s) const {
    double extra = 0, latency = 0;
    for_each_pair(s, [&](std::size_t i, const Pair& pair) {
      const std::size_t e = pair.engine.at();
      extra += (pair.cost_s + pair.work_s * marginal_[e]) * (flow_[i] - fresh_.flow_per_s[i]);
      latency += (pair.cost_s + pair.work_s * mean_cost(e)) * fresh_.flow_per_s[i];
    });
    return extra > tolerance_ * std::max(0.0, latency);
  }

  bool engine_suffers(std::size_t e) const {
    const CongestionCurve& curve = problem_.engines[e].curve;
    const double now = load_[e], best = fresh_.load[e];
    if (curve.ceiling <= 0.0 || now == best) return false;
    if (now > curve.ceiling && now > best) return true;
    const double extra = curve.cost(now) - curve.cost(best) - marginal_[e] * (now - best);
    return extra > tolerance_ * std::max(curve.cost(now), curve.cost(best));
  }

  /// Whoever is kept and differs on a suffering engine is kept no more. True if there was one.
  bool put_fresh_where_engines_suffer() {
    std::vector<bool> suffers;
    for (std::size_t e = 0; e < load_.size(); ++e) suffers.push_back(engine_suffers(e));
    bool any = false;
    for (std::size_t s = 0; s < kept_.size(); ++s) {
      bool touched = false;
      if (kept_[s])
        for_each_pair(s, [&](std::size_t i, const Pair& pair) {
          touched |= suffers[pair.engine.at()] && flow_[i] != fresh_.flow_per_s[i];
        });
      if (touched) put_fresh(s);
      any |= touched;
    }
    return any;
  }

  KeptPlan finish() {
    KeptPlan out{fresh_, kept_, false};
    if (std::find(kept_.begin(), kept_.end(), true) == kept_.end()) return out;
    out.stands = true;
    for (std::size_t s = 0; s < kept_.size(); ++s)
      out.stands &= kept_[s] || problem_.sources[s].demand_per_s <= 0.0;
    out.plan.flow_per_s = flow_;
    out.plan.load = loads_of(problem_, flow_);
    out.plan.terms = objective_terms(problem_, flow_, fresh_.shed_per_s, out.plan.load);
    double objective = 0;
    for (const double term : out.plan.terms) objective += term;
    std::erase_if(out.plan.binding, [&](const BindingLimit& b) {
      return b.limit == Limit::engine_ceiling &&
             out.plan.load[b.row] < full * problem_.engines[b.row].curve.ceiling;
    });
    Certificate& certificate = out.plan.certificate;
    certificate.objective = objective;
    certificate.relative_gap =
        (objective - certificate.lower_bound) / std::max(std::abs(certificate.lower_bound), 1e-9);
    return out;
  }

  const Problem& problem_;
  const Plan& fresh_;
  const double tolerance_;
  std::vector<double> marginal_;  ///< by engine: what one more work second costs at the fresh load
  std::vector<double> flow_, load_;
  std::vector<bool> kept_;
};

}  // namespace

KeptPlan keep_in_force(const Problem& problem, const Plan& fresh, double tolerance) {
  if (tolerance <= 0.0) return {fresh, std::vector<bool>(problem.sources.size(), false), false};
  return Keeper(problem, fresh, tolerance).run();
}

}  // namespace signalbox::optimizer
