#include "actors/global_optimizer/machine/snapshots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/global_optimizer/machine/caps.hpp"
#include "actors/global_optimizer/machine/ceilings.hpp"
#include "actors/global_optimizer/machine/churn.hpp"
#include "actors/global_optimizer/machine/limit_prices.hpp"
#include "actors/global_optimizer/machine/reserves.hpp"
#include "actors/global_optimizer/machine/restate.hpp"
#include "actors/global_optimizer/machine/survive.hpp"

namespace signalbox::global_optimizer {

namespace {

using optimizer::PairIndex;
using optimizer::SourceIndex;

constexpr std::size_t most_runners_up = 8;
/// Total variation by which the weights of a class that nobody asks for may lag behind the engines' free capacity: that
/// moves with every other class's load.
constexpr double idle_lag = 0.1;

/// Of a row, in small weights; in a large fleet many of them are how it is spread.
constexpr double most_cut = 0.01;

/// Of RunnerUpRow::less_loaded.
constexpr double not_even_idle = 2;
/// A reduced cost below this is none: the engine is not used because moving there would gain too little.
constexpr double no_cost_s = 1e-9;

/// One source's row before it is written down.
struct Row {
  std::vector<Share> shares;        ///< one for each allowed engine, ascending
  std::vector<double> solved;       ///< beside it: the weights before the policy's limits
  std::vector<double> reduced_s;    ///< beside it; infinite without a pair
  std::vector<double> less_loaded;  ///< beside it
};

class Writer {
 public:
  Writer(const Facts& facts, const optimizer::BuiltProblem& built, const optimizer::Plan& plan)
      : facts_(facts), built_(built), problem_(built.problem), plan_(plan), domains_(*facts.table) {
    for (std::size_t e = 0; e < problem_.engines.size(); ++e)
      room_.push_back(problem_.engines[e].curve.ceiling - plan.load[e]);
  }

  schema::RoutingSnapshot frame(ClusterIndex cluster) const {
    schema::RoutingSnapshot out;
    out.cluster = facts_.table->clusters[cluster.at()].name;
    out.policy = facts_.policy->hash;
    out.table = facts_.table->content;
    out.kind = schema::PlanKind::optimal;
    out.objective = plan_.certificate.objective;
    out.lower_bound = plan_.certificate.lower_bound;
    out.gap = std::max(plan_.certificate.relative_gap, 0.0);  // an optimum's is rounding, of either sign
    out.covers = facts_.covers;
    out.prices = prices();
    out.costs = costs();
    for (std::size_t c = 0; c < facts_.allowed.size(); ++c)
      out.allowed.push_back({ClassIndex(c), kit::as_bitmap(facts_.allowed[c], facts_.table->engines.size())});
    return out;
  }

  void add_source(SourceIndex source, schema::RoutingSnapshot& out) {
    const ClassIndex c = facts_.fleet.traffic[source.at()].service_class;
    const Expected& expected = facts_.expected[source.at()];
    const double admit = optimizer::admit_fraction(problem_, plan_, source);
    const double planned_for = facts_.fleet.traffic[source.at()].demand_per_s;
    out.admits.push_back(admitted(c, admit, planned_for, expected));
    Row row = planned(source);
    const policy::Limits& limits = facts_.policy->limits;
    const bool solved_within_caps = limits.caps_weights() && keeps_caps(row.shares, domains_, limits);
    cut_small(source, admit, row.shares);
    // What makes up for small weights goes past caps that the solver kept; that is no limit's doing.
    if (solved_within_caps) hold_caps(row.shares, domains_, limits);
    for (const Share& share : row.shares) row.solved.push_back(share.weight);
    share_fairly(row.shares, facts_, out.admits.back());
    hold_row(row.shares, domains_, *facts_.policy, c, out.limits);
    normalise(row.shares);
    charge(source, admit, row);
    for (const Share& share : row.shares)
      if (share.weight > 0)
        out.weights.push_back({c, share.engine, share.weight, in_flight(source, share, admit)});
    add_runners_up(source, row, out);
    count_moved(source, row.shares, admit);
  }

  /// Of the requests of the sources added since the last call.
  double take_moved() {
    const double out = planned_ > 0 ? std::clamp(moved_ / planned_, 0.0, 1.0) : 0;
    moved_ = planned_ = 0;
    return out;
  }

 private:
  /// What a plan would refuse and perhaps nobody asks for need not be refused: the rate planned for is then what is admitted,
  /// or what is asked for beyond doubt if that is more. Should more come, the routers' queues see it at once and the next plan
  /// is surer.
  static schema::AdmitRow admitted(ClassIndex c, double share, double planned_for, const Expected& expected) {
    const double rate = std::clamp(share, 0.0, 1.0) * planned_for;
    const double offered = std::min(planned_for, std::max(rate, expected.sure_per_s));
    return {c, offered > 0 ? std::clamp(rate / offered, 0.0, 1.0) : 1.0, offered,
            expected.shape.uncached_prompt_tokens, expected.shape.output_tokens};
  }

  /// The plan's shares; by free capacity where the plan sends nothing.
  Row planned(SourceIndex source) const {
    const optimizer::Source& s = problem_.sources[source.at()];
    const ClassIndex c = facts_.fleet.traffic[source.at()].service_class;
    Row out;
    double sum = 0;
    std::size_t pair = s.first_pair;
    for (const EngineIndex e : facts_.allowed[c.at()]) {
      Share share{.engine = e, .room = free_rate(source, e)};
      double reduced = std::numeric_limits<double>::infinity(), relief = not_even_idle;
      if (pair < s.first_pair + s.pair_count && problem_.pairs[pair].engine == e) {
        share.weight = optimizer::weight(problem_, plan_, source, PairIndex(pair));
        reduced = optimizer::reduced_cost_s(problem_, plan_, source, PairIndex(pair));
        relief = optimizer::less_loaded(problem_, plan_, source, PairIndex(pair)).value_or(not_even_idle);
        share.dearer_s = std::max(0.0, reduced);
        if (const double rate = s.demand_per_s - plan_.shed_per_s[source.at()]; rate > 0)
          share.most = std::max(0.0, room_[e.at()]) / work(source, e) / rate;
        ++pair;
      }
      sum += share.weight;
      out.shares.push_back(share);
      out.reduced_s.push_back(reduced);
      out.less_loaded.push_back(relief);
    }
    if (sum <= 0) spread_idle(source, out.shares);
    return out;
  }

  /// The shares in force of a source's allowed engines, ascending.
  const double* in_force(SourceIndex source) const {
    const auto& routes = facts_.fleet.routes;
    const auto route = std::lower_bound(routes.begin(), routes.end(), source,
                                        [](const auto& r, SourceIndex s) { return r.source < s; });
    return facts_.in_force.data() + (route - routes.begin());
  }

  /// By free capacity, or as in force while that is about the same.
  void spread_idle(SourceIndex source, std::vector<Share>& shares) const {
    for (Share& share : shares) share.weight = share.room;
    normalise(shares);
    const double* before = in_force(source);
    double sum = 0, apart = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (before[i] > 0 && shares[i].room <= 0) return;
      sum += before[i];
      apart += std::abs(before[i] - shares[i].weight) / 2;
    }
    if (std::abs(sum - 1) > 1e-6 || apart > idle_lag) return;
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i].weight = before[i];
  }

  void count_moved(SourceIndex source, const std::vector<Share>& shares, double admit) {
    if (facts_.in_force.empty()) return;
    const double rate = facts_.fleet.traffic[source.at()].demand_per_s * admit;
    const double* before = in_force(source);
    double sum = 0, apart = 0;
    for (std::size_t i = 0; i < shares.size(); ++i)
      sum += before[i], apart += std::abs(before[i] - shares[i].weight) / 2;
    if (sum <= 0) return;  // nothing was in force
    planned_ += rate;
    moved_ += rate * apart;
  }

  /// Requests of this source per second that the engine could still take.
  double free_rate(SourceIndex source, EngineIndex e) const {
    const optimizer::EngineState& engine = facts_.fleet.engines[e.at()];
    const double ceiling = problem_.engines[e.at()].curve.ceiling;
    if (engine.availability <= 0 || ceiling <= 0) return 0;
    return std::max(ceiling - plan_.load[e.at()], 0.05 * ceiling) / work(source, e);
  }
  double work(SourceIndex source, EngineIndex e) const {
    return std::max(
        optimizer::work_s(facts_.fleet.engines[e.at()].step, facts_.fleet.traffic[source.at()].shape), 1e-9);
  }

  static void normalise(std::vector<Share>& shares) {
    double sum = 0;
    for (const Share& share : shares) sum += share.weight;
    for (Share& share : shares) share.weight = sum > 0 ? share.weight / sum : 0;
  }

  /// What limits have moved takes room from the rows that follow.
  void charge(SourceIndex source, double admit, const Row& row) {
    const double rate = facts_.fleet.traffic[source.at()].demand_per_s * admit;
    for (std::size_t i = 0; i < row.shares.size(); ++i)
      room_[row.shares[i].engine.at()] -=
          rate * (row.shares[i].weight - row.solved[i]) * work(source, row.shares[i].engine);
  }

  /// Gives small weights to the rest of the row, as long as they are little together and the engines there have room for it.
  void cut_small(SourceIndex source, double admit, std::vector<Share>& shares) {
    std::vector<std::size_t> small;
    for (std::size_t i = 0; i < shares.size(); ++i)
      if (shares[i].weight > 0 && shares[i].weight < cut) small.push_back(i);
    if (small.empty()) return;
    std::ranges::stable_sort(small, {}, [&](std::size_t i) { return shares[i].weight; });
    std::vector<Share> without = shares;
    double gone = 0;
    for (const std::size_t i : small)
      if ((gone += shares[i].weight) <= most_cut) without[i].weight = 0;
    normalise(without);
    const optimizer::TrafficState& traffic = facts_.fleet.traffic[source.at()];
    std::vector<double> room = room_;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const EngineIndex e = shares[i].engine;
      const double more = (without[i].weight - shares[i].weight) * traffic.demand_per_s * admit *
                          optimizer::work_s(facts_.fleet.engines[e.at()].step, traffic.shape);
      room[e.at()] -= more;
      if (more > 0 && room[e.at()] < 0) return;
    }
    room_ = std::move(room);
    shares = std::move(without);
  }

  /// By Little's law: the rate there times the time that a request spends there.
  double in_flight(SourceIndex source, const Share& share, double admit) const {
    const optimizer::TrafficState& traffic = facts_.fleet.traffic[source.at()];
    const optimizer::CongestionCurve& curve = problem_.engines[share.engine.at()].curve;
    const auto latency =
        optimizer::expected_latency(facts_.fleet.engines[share.engine.at()].step, traffic.shape,
                                    plan_.load[share.engine.at()], curve.capacity);
    const double seconds = latency.ttft_s + traffic.shape.output_tokens * latency.tpot_s;
    const double out = traffic.demand_per_s * admit * share.weight * seconds;
    return std::isfinite(out) ? std::clamp(out, 0.0, 1e7) : 0;
  }

  std::vector<schema::PriceRow> prices() const {
    std::vector<schema::PriceRow> out;
    for (std::size_t e = 0; e < facts_.fleet.engines.size(); ++e) {
      const optimizer::EngineState& engine = facts_.fleet.engines[e];
      schema::PriceRow row;
      row.engine = EngineIndex(e);
      row.price = std::clamp(plan_.price[e], 0.0, 1e9);
      row.planned_load = plan_.load[e];
      const optimizer::CongestionCurve& curve = problem_.engines[e].curve;
      row.capacity = curve.ceiling;
      if (curve.ceiling > 0) row.congestion = std::clamp(curve.marginal(plan_.load[e]), 0.0, 1e9);
      row.slowness = std::clamp(engine.step.slowness, 0.05, 100.0);
      if (engine.availability < 1) row.binding = schema::Binding::health;
      if (is_full(EngineIndex(e))) row.binding = ceiling_of(e);
      out.push_back(row);
    }
    return out;
  }

  schema::Binding ceiling_of(std::size_t e) const {
    switch (built_.ceilings[e]) {
      case optimizer::CeilingReason::batch: return schema::Binding::batch;
      case optimizer::CeilingReason::kv_memory: return schema::Binding::kv_memory;
      default: return schema::Binding::capacity;
    }
  }

  std::vector<schema::CostRow> costs() const {
    using enum schema::CostPart;
    const optimizer::ObjectiveParts parts = optimizer::objective_parts(built_, plan_);
    return {{network, parts.network}, {egress, parts.egress},         {cache, parts.cache},
            {service, parts.service}, {congestion, parts.congestion}, {churn, parts.churn},
            {shed, parts.shed}};
  }

  bool is_full(EngineIndex e) const {
    return std::any_of(plan_.binding.begin(), plan_.binding.end(), [&](const optimizer::BindingLimit& b) {
      return b.limit == optimizer::Limit::engine_ceiling && b.row == e.value;
    });
  }

  schema::LosingReason losing_reason(EngineIndex e, double reduced_s) const {
    if (facts_.health[e.at()] == HealthState::draining) return schema::LosingReason::draining;
    if (facts_.fleet.engines[e.at()].availability <= 0) return schema::LosingReason::gone;
    if (reduced_s <= no_cost_s) return schema::LosingReason::dead_band;
    if (is_full(e)) return schema::LosingReason::full;
    return schema::LosingReason::dearer;
  }

  /// The nearest first; those without a pair (gone, draining) last.
  void add_runners_up(SourceIndex source, const Row& row, schema::RoutingSnapshot& out) const {
    const ClassIndex c = facts_.fleet.traffic[source.at()].service_class;
    std::vector<schema::RunnerUpRow> rows;
    for (std::size_t i = 0; i < row.shares.size(); ++i) {
      if (row.shares[i].weight > 0) continue;
      const bool has_pair = std::isfinite(row.reduced_s[i]);
      const EngineIndex e = row.shares[i].engine;
      rows.push_back({c, e, has_pair ? std::clamp(row.reduced_s[i], 0.0, 1e6) : 1e6,
                      losing_reason(e, row.reduced_s[i]), row.less_loaded[i]});
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.reduced_cost_s < b.reduced_cost_s; });
    if (rows.size() > most_runners_up) rows.resize(most_runners_up);
    out.runners_up.insert(out.runners_up.end(), rows.begin(), rows.end());
  }

  const Facts& facts_;
  const optimizer::BuiltProblem& built_;
  const optimizer::Problem& problem_;
  const optimizer::Plan& plan_;
  double moved_ = 0, planned_ = 0;
  const Domains domains_;
  std::vector<double> room_;  ///< by EngineIndex: load that may still be added, as the rows so far leave it
};

/// As published but for the period, and for loads, costs and certificate, which are still the solver's.
std::vector<schema::RoutingSnapshot> rows_of(const Facts& facts, const optimizer::BuiltProblem& built,
                                             const optimizer::Plan& plan) {
  Writer writer(facts, built, plan);
  std::vector<schema::RoutingSnapshot> out;
  for (std::size_t cluster = 0; cluster < facts.table->clusters.size(); ++cluster) {
    out.push_back(writer.frame(ClusterIndex(cluster)));
    for (std::size_t s = 0; s < facts.fleet.traffic.size(); ++s)
      if (facts.fleet.traffic[s].cluster == ClusterIndex(cluster))
        writer.add_source(SourceIndex(s), out.back());
    out.back().moved = writer.take_moved();
  }
  hold_survival(out, facts);
  if (facts.policy->limits_rows()) even_out(out, facts, built, published_plan(out, facts, built, plan));
  hold_churn(out, facts);
  refuse_what_is_too_much(out, facts);
  check_reserves(out, facts);
  return out;
}

}  // namespace

std::vector<schema::RoutingSnapshot> snapshots_of(const Facts& facts, const optimizer::BuiltProblem& built,
                                                  const optimizer::Plan& plan, Duration period) {
  auto out = rows_of(facts, built, plan);
  restate(out, facts, built, plan);
  for (auto& snapshot : out) snapshot.period = period;
  return out;
}

optimizer::Plan within_limits(const Facts& facts, const optimizer::BuiltProblem& built,
                              const optimizer::Plan& plan) {
  if (!facts.policy->limits_rows()) return plan;
  return published_plan(rows_of(facts, built, plan), facts, built, plan);
}

}  // namespace signalbox::global_optimizer
