#include "actors/global_optimizer/machine/churn.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "actors/global_optimizer/machine/caps.hpp"
#include "actors/global_optimizer/machine/ceilings.hpp"
#include "actors/global_optimizer/machine/survive.hpp"

namespace signalbox::global_optimizer {

namespace {

constexpr double tolerance = 1e-9;
/// Above this, relatively, a load is more than rounding.
constexpr double load_tolerance = 1e-7;

using Weights = std::map<EngineIndex, double>;

std::map<ClassIndex, Weights> rows_of(const schema::RoutingSnapshot& snapshot) {
  std::map<ClassIndex, Weights> out;
  for (const schema::WeightRow& row : snapshot.weights) out[row.request_class][row.engine] = row.weight;
  return out;
}

/// One row that would move too much.
struct Long {
  std::size_t snapshot;
  ClassIndex of;
  std::vector<Share> whole, part;  ///< where the plan would have it, and as far as it may go
};

class Holder {
 public:
  Holder(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts)
      : plan_(plan), facts_(facts), domains_(*facts.table) {}

  void run() {
    find_long_rows();
    if (rows_.empty()) return;
    const bool survived = keeps_survival(plan_, facts_);
    std::set<std::size_t> whole;
    put(whole);
    const auto over = overloaded();
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (std::size_t i = 0; i < rows_[r].part.size(); ++i)
        if (over[rows_[r].part[i].engine.at()] && rows_[r].part[i].weight > rows_[r].whole[i].weight)
          whole.insert(r);
    if (!whole.empty()) put(whole);
    if (std::ranges::count(overloaded(), true) > 0 || (survived && !keeps_survival(plan_, facts_))) {
      for (std::size_t r = 0; r < rows_.size(); ++r) whole.insert(r);
      put(whole);
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) say(rows_[r], !whole.contains(r));
  }

 private:
  void find_long_rows() {
    std::size_t route = 0;
    const auto& routes = facts_.fleet.routes;
    for (std::size_t s = 0; s < facts_.fleet.traffic.size(); ++s) {
      const optimizer::TrafficState& traffic = facts_.fleet.traffic[s];
      Long row{traffic.cluster.at(), traffic.service_class, {}, {}};
      double sum = 0;
      for (; route < routes.size() && routes[route].source.at() == s; ++route) {
        if (facts_.fleet.engines[routes[route].engine.at()].availability <= 0) continue;
        row.part.push_back({.engine = routes[route].engine, .weight = facts_.in_force[route]});
        sum += facts_.in_force[route];
      }
      if (sum > 0) add_if_long(std::move(row), sum, facts_.may_move[s]);
    }
  }

  void add_if_long(Long row, double sum, double may_move) {
    const auto& weights = plan_[row.snapshot].weights;
    double moved = 0;
    for (Share& share : row.part) {
      const auto at =
          std::ranges::lower_bound(weights, std::pair(row.of, share.engine), {},
                                   [](const auto& w) { return std::pair(w.request_class, w.engine); });
      const bool used = at != weights.end() && at->request_class == row.of && at->engine == share.engine;
      share.weight /= sum;
      row.whole.push_back({.engine = share.engine, .weight = used ? at->weight : 0});
      moved += std::abs(row.whole.back().weight - share.weight);
    }
    if (moved <= may_move + tolerance) return;
    const double way = may_move / moved;
    for (std::size_t i = 0; i < row.part.size(); ++i)
      row.part[i].weight += way * (row.whole[i].weight - row.part[i].weight);
    const policy::ClassRow& c = facts_.policy->at(row.of);
    const auto keeps = [&](const std::vector<Share>& shares) {
      return keeps_caps(shares, domains_, facts_.policy->limits) && keeps_spread(shares, domains_, c);
    };
    if (!keeps(row.part) && keeps(row.whole)) return say(row, false);
    rows_.push_back(std::move(row));
  }

  /// Writes the rows into the plan: these go all the way, the others as far as they may.
  void put(const std::set<std::size_t>& whole) {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      auto& weights = plan_[rows_[r].snapshot].weights;
      const auto [from, to] =
          std::ranges::equal_range(weights, rows_[r].of, {}, &schema::WeightRow::request_class);
      const std::vector<schema::WeightRow> old(from, to);
      std::vector<schema::WeightRow> fresh;
      for (const Share& share : whole.contains(r) ? rows_[r].whole : rows_[r].part) {
        if (share.weight <= 0) continue;
        const auto was = std::ranges::find(old, share.engine, &schema::WeightRow::engine);
        fresh.push_back(
            {rows_[r].of, share.engine, share.weight, was == old.end() ? 0 : was->planned_inflight});
      }
      const auto place = weights.erase(from, to);
      weights.insert(place, fresh.begin(), fresh.end());
    }
  }

  /// By EngineIndex, as the verifier counts.
  std::vector<bool> overloaded() const {
    std::vector<double> load(facts_.fleet.engines.size(), 0.0);
    for (const auto& snapshot : plan_)
      for (const schema::AdmitRow& admit : snapshot.admits) {
        const auto row = std::ranges::equal_range(snapshot.weights, admit.request_class, {},
                                                  &schema::WeightRow::request_class);
        for (const schema::WeightRow& w : row)
          load[w.engine.at()] +=
              admit.planned_rps * admit.admit * w.weight * work_of(facts_, admit, w.engine);
      }
    std::vector<bool> out;
    for (std::size_t e = 0; e < load.size(); ++e)
      out.push_back(load[e] > load_ceiling(facts_, EngineIndex(e)) * (1 + load_tolerance) + 1e-12);
    return out;
  }

  void say(const Long& row, bool held) {
    auto& limits = plan_[row.snapshot].limits;
    if (!held) {
      const auto heaviest = std::ranges::max_element(row.whole, {}, &Share::weight);
      limits.push_back({row.of, heaviest->engine, schema::PolicyLimit::churn, 0, false});
      return;
    }
    for (std::size_t i = 0; i < row.part.size(); ++i)
      if (const double moved = row.part[i].weight - row.whole[i].weight; std::abs(moved) > 1e-6)
        limits.push_back(
            {row.of, row.part[i].engine, schema::PolicyLimit::churn, std::clamp(moved, -1.0, 1.0), true});
  }

  std::vector<schema::RoutingSnapshot>& plan_;
  const Facts& facts_;
  const Domains domains_;
  std::vector<Long> rows_;
};

}  // namespace

void ChurnBook::note(const schema::RoutingSnapshot& before, const schema::RoutingSnapshot& after,
                     const policy::Churn& limit, Instant now) {
  if (!limit.in_window) return;
  if (before.policy != after.policy || before.table != after.table) return clear();
  const auto was = rows_of(before), is = rows_of(after);
  std::set<EngineIndex> serves;
  for (const schema::PriceRow& row : after.prices)
    if (row.capacity > 0) serves.insert(row.engine);
  for (const auto& [c, weights] : is) {
    const auto old = was.find(c);
    if (old == was.end()) continue;
    double sum = 0, moved = 0;
    for (const auto& [e, w] : old->second) sum += serves.contains(e) ? w : 0;
    if (sum <= 0) continue;
    Weights apart = weights;
    for (const auto& [e, w] : old->second)
      if (serves.contains(e)) apart[e] -= w / sum;
    for (const auto& [e, w] : apart) moved += std::abs(w);
    auto& moves = moves_[{after.cluster, c}];
    while (!moves.empty() && moves.front().at + limit.window <= now) moves.pop_front();
    if (moved > tolerance) moves.push_back({now, moved});
  }
}

void ChurnBook::fill(Facts& facts, Instant now) const {
  const policy::Churn& limit = facts.policy->limits.churn;
  facts.may_move.clear();
  if (!limit.limited()) return;
  for (const optimizer::TrafficState& traffic : facts.fleet.traffic) {
    double most = limit.per_snapshot.value_or(2.0);
    const auto moves = moves_.find({facts.table->clusters[traffic.cluster.at()].name, traffic.service_class});
    double spent = 0;
    if (moves != moves_.end())
      for (const Move& move : moves->second) spent += move.at + limit.window > now ? move.sum : 0;
    if (limit.in_window) most = std::min(most, std::max(0.0, *limit.in_window - spent));
    facts.may_move.push_back(most);
  }
}

void hold_churn(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts) {
  if (!facts.may_move.empty()) Holder(plan, facts).run();
}

}  // namespace signalbox::global_optimizer
