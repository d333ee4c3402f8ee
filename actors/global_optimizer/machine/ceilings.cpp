#include "actors/global_optimizer/machine/ceilings.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "actors/global_optimizer/machine/shed_order.hpp"

namespace signalbox::global_optimizer {

namespace {

/// Above this, relatively, a load is more than rounding.
constexpr double tolerance = 1e-7;
constexpr int halvings = 40;

/// By cluster and class: the tokens that a request holds while it is decoded, the cached ones too.
std::map<std::pair<ClusterName, ClassIndex>, double> contexts_of(const Facts& facts) {
  std::map<std::pair<ClusterName, ClassIndex>, double> out;
  for (const optimizer::TrafficState& t : facts.fleet.traffic)
    out[{facts.table->clusters[t.cluster.at()].name, t.service_class}] = t.shape.context_tokens;
  return out;
}

double work_with(const Facts& facts, const schema::AdmitRow& row, double context, EngineIndex e) {
  const double least = row.prompt_tokens + row.output_tokens / 2;
  const optimizer::RequestShape shape{row.prompt_tokens, row.output_tokens, std::max(context, least)};
  return optimizer::work_s(facts.fleet.engines[e.at()].step, shape);
}

/// Engines that some class may use in place of each other have the same root.
class Pools {
 public:
  explicit Pools(const Facts& facts) : facts_(facts), parent_(facts.fleet.engines.size()) {
    std::iota(parent_.begin(), parent_.end(), 0u);
    for (const auto& engines : facts.allowed) {
      const EngineIndex first = usable(engines);
      for (const EngineIndex e : engines)
        if (facts.fleet.engines[e.at()].availability > 0) parent_[root(e.at())] = root(first.at());
    }
  }
  std::size_t of(std::size_t engine) const { return root(engine); }
  /// The pool of a class's engines; none if all of them are out of service.
  std::optional<std::size_t> of(ClassIndex c) const {
    const EngineIndex first = usable(facts_.allowed[c.at()]);
    return first.valid() ? std::optional(root(first.at())) : std::nullopt;
  }

 private:
  EngineIndex usable(const std::vector<EngineIndex>& engines) const {
    for (const EngineIndex e : engines)
      if (facts_.fleet.engines[e.at()].availability > 0) return e;
    return {};
  }
  std::size_t root(std::size_t e) const {
    while (parent_[e] != e) e = parent_[e];
    return e;
  }
  const Facts& facts_;
  std::vector<std::size_t> parent_;
};

class Refusing {
 public:
  Refusing(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts)
      : plan_(plan), facts_(facts), pools_(facts) {}

  void run() {
    for (const std::size_t pool : pools_with_too_much())
      for (std::size_t turn = 0; turn <= facts_.policy->shed.order.size(); ++turn)
        if (refuse(pool, turn)) break;
  }

 private:
  std::set<std::size_t> pools_with_too_much() const {
    std::set<std::size_t> out;
    const auto load = loads_of(plan_, facts_);
    for (std::size_t e = 0; e < load.size(); ++e)
      if (load[e] > load_ceiling(facts_, EngineIndex(e)) * (1 + tolerance)) out.insert(pools_.of(e));
    return out;
  }
  bool too_much(std::size_t pool) const { return pools_with_too_much().contains(pool); }

  /// Refuses as little as will do of this turn's classes; false if all of it is not enough.
  bool refuse(std::size_t pool, std::size_t turn) {
    std::vector<schema::AdmitRow*> rows;
    for (auto& snapshot : plan_)
      for (auto& row : snapshot.admits)
        if (shed_turn(*facts_.policy, row.request_class) == turn && pools_.of(row.request_class) == pool)
          rows.push_back(&row);
    std::vector<double> before;
    for (const auto* row : rows) before.push_back(row->admit);
    const auto keep = [&](double share) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const double floor = facts_.policy->at(rows[i]->request_class).floor_share;
        rows[i]->admit = std::min(before[i], std::max(floor, share * before[i]));
      }
    };
    keep(0);
    if (too_much(pool)) return false;
    double fits = 0, fails = 1;
    for (int i = 0; i < halvings; ++i) {
      const double share = (fits + fails) / 2;
      keep(share);
      (too_much(pool) ? fails : fits) = share;
    }
    keep(fits);
    return true;
  }

  std::vector<schema::RoutingSnapshot>& plan_;
  const Facts& facts_;
  Pools pools_;
};

}  // namespace

double load_ceiling(const Facts& facts, EngineIndex e) {
  return facts.policy->limits.load_ceiling * facts.fleet.engines[e.at()].availability;
}

double work_of(const Facts& facts, const schema::AdmitRow& row, EngineIndex e) {
  return work_with(facts, row, 0, e);
}

void share_fairly(std::vector<Share>& row, const Facts& facts, const schema::AdmitRow& kind) {
  double sum = 0;
  for (Share& share : row) {
    // A class of which nothing is known yet goes by engine time alone.
    const double work = work_of(facts, kind, share.engine);
    sum += share.fair = load_ceiling(facts, share.engine) / (work > 0 ? work : 1.0);
  }
  for (Share& share : row) share.fair = sum > 0 ? share.fair / sum : 0;
}

std::vector<double> loads_of(const std::vector<schema::RoutingSnapshot>& plan, const Facts& facts) {
  std::vector<double> out(facts.fleet.engines.size(), 0.0);
  const auto contexts = contexts_of(facts);
  for (const auto& snapshot : plan)
    for (const auto& row : snapshot.weights) {
      const auto admit = std::find_if(snapshot.admits.begin(), snapshot.admits.end(),
                                      [&](const auto& a) { return a.request_class == row.request_class; });
      if (admit == snapshot.admits.end()) continue;
      const auto context = contexts.find({snapshot.cluster, row.request_class});
      out[row.engine.at()] +=
          admit->planned_rps * admit->admit * row.weight *
          work_with(facts, *admit, context == contexts.end() ? 0 : context->second, row.engine);
    }
  return out;
}

void refuse_what_is_too_much(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts) {
  Refusing(plan, facts).run();
}

}  // namespace signalbox::global_optimizer
