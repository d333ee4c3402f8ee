#include "optimizer/verify/verify.hpp"

#include "optimizer/verify/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace signalbox::verify {
namespace {

constexpr std::size_t most_violations = 100;
/// Weights are quotients of sums of a few thousand doubles.
constexpr double sum_tolerance = 1e-9;
/// Loads are summed here in another order than in the plan, from rates and means that were rounded on their way.
constexpr double load_tolerance = 1e-6;
/// Shares of a class's demand below this are no evidence of a wrong order.
constexpr double share_tolerance = 1e-3;

/// One class in one cluster, as the snapshot says it.
struct ClassPlan {
  double admit = 1.0, rate = 0.0, prompt_tokens = 0.0, output_tokens = 0.0;
  bool listed = false;
  std::vector<schema::WeightRow> weights;
};

class Verifier {
 public:
  explicit Verifier(const Judged& judged)
      : in_(judged),
        load_(judged.table.engines.size(), 0.0),
        slowness_(load_.size(), 1.0),
        capacity_(load_.size(), 0.0),
        rows_{judged.policy, judged.table, capacity_, {}, judged.before} {
    for (std::size_t e = 0; e < load_.size(); ++e) capacity_[e] = in_.policy.limits.load_ceiling * factor(e);
  }

  std::vector<Violation> run() {
    if (in_.standings.size() != load_.size()) {
      found(Fault::unknown_row,
            fmt::format("{} standings for {} engines", in_.standings.size(), load_.size()));
      return std::move(violations_);
    }
    clusters();
    for (const auto& snapshot : in_.snapshots) {
      ClusterIndex cluster = find_cluster(snapshot.cluster);
      if (!cluster.valid() || !header(snapshot)) continue;
      prices(snapshot);
      plans_.assign(in_.policy.classes.size(), {});
      if (!collect(snapshot)) continue;
      for (std::size_t c = 0; c < plans_.size(); ++c) class_plan(snapshot, ClassIndex(c));
      shed_order(snapshot);
    }
    ceilings();
    memory();
    if (in_.policy.limits_rows())
      check_limits(rows_, [this](Fault fault, std::string text) { found(fault, std::move(text)); });
    return std::move(violations_);
  }

 private:
  void found(Fault fault, std::string text) {
    if (violations_.size() < most_violations) violations_.push_back({fault, std::move(text)});
  }
  /// What may be planned of an engine; nothing if it is out of service or its verdict is no number.
  double factor(std::size_t e) const {
    if (e >= in_.standings.size() || out_of_service(e)) return 0.0;
    const double share = in_.standings[e].capacity_factor;
    return share >= 0.0 && share <= 1.0 ? share : 0.0;
  }
  bool out_of_service(std::size_t e) const {
    const HealthState state = in_.standings[e].state;
    return state == HealthState::gone || state == HealthState::draining;
  }
  const std::string& engine(EngineIndex e) const { return in_.table.engines[e.at()].name.str(); }
  const std::string& name(ClassIndex c) const { return in_.policy.at(c).name.str(); }

  ClusterIndex find_cluster(const ClusterName& wanted) {
    for (std::size_t i = 0; i < in_.table.clusters.size(); ++i)
      if (in_.table.clusters[i].name == wanted) return ClusterIndex(i);
    found(Fault::unknown_row,
          fmt::format("a snapshot is for cluster {}, which the fleet table does not have", wanted));
    return {};
  }

  void clusters() {
    for (const auto& row : in_.table.clusters) {
      const auto same = [&](const schema::RoutingSnapshot& s) { return s.cluster == row.name; };
      const auto count = std::count_if(in_.snapshots.begin(), in_.snapshots.end(), same);
      if (count != 1)
        found(Fault::missing_cluster, fmt::format("cluster {} has {} snapshots", row.name, count));
    }
  }

  bool header(const schema::RoutingSnapshot& s) {
    if (s.policy != in_.policy.hash)
      found(Fault::wrong_policy, fmt::format("{}: made for policy {}, in force is {}", s.cluster,
                                             s.policy.brief(), in_.policy.hash.brief()));
    if (s.table != in_.table.content)
      found(Fault::wrong_table, fmt::format("{}: made for table {}, in force is {}", s.cluster,
                                            s.table.brief(), in_.table.content.brief()));
    if (s.kind == schema::PlanKind::optimal && !(in_.heard_share >= in_.policy.lead.coverage))
      found(Fault::coverage, fmt::format("{}: {:.1f} % of the engines are heard, the policy wants {:.1f} %",
                                         s.cluster, 100 * in_.heard_share, 100 * in_.policy.lead.coverage));
    for (const double number : {s.objective, s.lower_bound, s.gap})
      if (!std::isfinite(number))
        return found(Fault::not_finite, fmt::format("{}: the certificate holds {}", s.cluster, number)),
               false;
    return true;
  }

  void prices(const schema::RoutingSnapshot& s) {
    for (const auto& row : s.prices) {
      if (row.engine.at() >= load_.size()) {
        found(Fault::unknown_row,
              fmt::format("{}: a price is for engine {} of {}", s.cluster, row.engine.value, load_.size()));
        continue;
      }
      if (!(row.price >= 0 && row.planned_load >= 0 && row.capacity >= 0 && row.slowness > 0) ||
          !std::isfinite(row.price + row.planned_load + row.capacity + row.slowness)) {
        found(Fault::not_finite,
              fmt::format("{}: price {}, load {}, capacity {}, slowness {} of {}", s.cluster, row.price,
                          row.planned_load, row.capacity, row.slowness, engine(row.engine)));
        continue;
      }
      slowness_[row.engine.at()] = row.slowness;
      const double most = capacity_[row.engine.at()];
      if (row.planned_load > most * (1.0 + load_tolerance) + 1e-12)
        found(Fault::over_ceiling, fmt::format("{}: {} is planned at {:.4f} s/s, it may carry {:.4f}",
                                               s.cluster, engine(row.engine), row.planned_load, most));
    }
  }

  /// The snapshot's rows by class; false if they cannot be told apart.
  bool collect(const schema::RoutingSnapshot& s) {
    for (const auto& row : s.admits) {
      if (row.request_class.at() >= plans_.size())
        return found(Fault::unknown_row,
                     fmt::format("{}: class {} is admitted", s.cluster, row.request_class.value)),
               false;
      ClassPlan& plan = plans_[row.request_class.at()];
      if (plan.listed)
        return found(Fault::disorder,
                     fmt::format("{}: class {} is admitted twice", s.cluster, name(row.request_class))),
               false;
      if (!(row.admit >= 0 && row.admit <= 1) || !(row.planned_rps >= 0) || !(row.prompt_tokens >= 0) ||
          !(row.output_tokens >= 0) ||
          !std::isfinite(row.planned_rps + row.prompt_tokens + row.output_tokens))
        return found(Fault::not_finite,
                     fmt::format("{}: class {} is admitted at {} of {} requests/s of {} + {} tokens",
                                 s.cluster, name(row.request_class), row.admit, row.planned_rps,
                                 row.prompt_tokens, row.output_tokens)),
               false;
      plan = {row.admit, row.planned_rps, row.prompt_tokens, row.output_tokens, true, {}};
    }
    const schema::WeightRow* last = nullptr;
    for (const auto& row : s.weights) {
      if (row.request_class.at() >= plans_.size() || row.engine.at() >= load_.size())
        return found(Fault::unknown_row, fmt::format("{}: a weight is for class {} and engine {}", s.cluster,
                                                     row.request_class.value, row.engine.value)),
               false;
      if (last && std::pair(last->request_class, last->engine) >= std::pair(row.request_class, row.engine))
        return found(Fault::disorder, fmt::format("{}: the weight of class {} on {} is out of order",
                                                  s.cluster, name(row.request_class), engine(row.engine))),
               false;
      last = &row;
      plans_[row.request_class.at()].weights.push_back(row);
    }
    return groups(s);
  }

  /// Where a class's hot prefixes are held it may be served.
  bool groups(const schema::RoutingSnapshot& s) {
    for (const auto& row : s.groups) {
      if (row.request_class.at() >= plans_.size() || row.engine.at() >= load_.size())
        return found(Fault::unknown_row, fmt::format("{}: a group is of class {} on engine {}", s.cluster,
                                                     row.request_class.value, row.engine.value)),
               false;
      const auto say = [&](Fault fault, std::string_view what) {
        found(fault, fmt::format("{}: a group of class {} is held on {}, {}", s.cluster,
                                 name(row.request_class), engine(row.engine), what));
      };
      if (!allowed(row.request_class, row.engine)) say(Fault::not_allowed, "which the policy forbids it");
      if (!serves(row.request_class, row.engine)) say(Fault::wrong_model, "which does not serve its model");
      if (out_of_service(row.engine.at())) say(Fault::out_of_service, "which is out of service");
    }
    return true;
  }

  void class_plan(const schema::RoutingSnapshot& s, ClassIndex c) {
    const ClassPlan& plan = plans_[c.at()];
    double sum = 0.0;
    for (const auto& row : plan.weights) {
      if (!(row.weight >= 0 && row.weight <= 1) || !(row.planned_inflight >= 0) ||
          !std::isfinite(row.planned_inflight)) {
        found(Fault::not_finite, fmt::format("{}: class {} has weight {} and {} in flight on {}", s.cluster,
                                             name(c), row.weight, row.planned_inflight, engine(row.engine)));
        return;
      }
      sum += row.weight;
      if (row.weight > 0) weight(s, c, row, plan);
    }
    if (plan.weights.empty()) {
      if (plan.listed && plan.admit > 0 && plan.rate > 0)
        found(Fault::uncovered,
              fmt::format("{}: class {} is admitted at {:.4f} of {:.3f} requests/s and has no weights",
                          s.cluster, name(c), plan.admit, plan.rate));
    } else if (!(std::abs(sum - 1.0) <= sum_tolerance)) {
      found(Fault::sum, fmt::format("{}: the weights of class {} sum to {:.12f}", s.cluster, name(c), sum));
    }
    if (!plan.weights.empty() && in_.policy.limits_rows()) keep_row(s, c, plan);
  }

  void weight(const schema::RoutingSnapshot& s, ClassIndex c, const schema::WeightRow& row,
              const ClassPlan& plan) {
    const auto& target = in_.table.engines[row.engine.at()];
    const auto say = [&](Fault fault, std::string_view what) {
      found(fault, fmt::format("{}: class {} has weight {:.6f} on {}, {}", s.cluster, name(c), row.weight,
                               target.name, what));
    };
    if (!allowed(c, row.engine)) say(Fault::not_allowed, "which the policy forbids it");
    if (!serves(c, row.engine)) say(Fault::wrong_model, "which does not serve its model");
    if (out_of_service(row.engine.at()))
      say(Fault::out_of_service, name_of(in_.standings[row.engine.at()].state));
    load_[row.engine.at()] += plan.rate * plan.admit * row.weight * work(plan, row.engine);
  }

  /// The work of one request, from the physics of continuous batching (optimizer/model/service_curve.hpp). The snapshot does not say what of
  /// the prompt was cached, so the context held while decoding is taken at its least: the load found here is a lower bound of the planned one.
  double work(const ClassPlan& plan, EngineIndex e) const {
    const double context = plan.prompt_tokens + plan.output_tokens / 2;
    const Standing& curve = in_.standings[e.at()];
    return slowness_[e.at()] *
           (plan.output_tokens * (curve.per_sequence_s + curve.per_context_token_s * context) +
            curve.per_prefill_token_s * plan.prompt_tokens);
  }

  /// What the limits of whole rows are judged by.
  void keep_row(const schema::RoutingSnapshot& s, ClassIndex c, const ClassPlan& plan) {
    Sent sent{s.cluster, c, plan.rate * plan.admit, {}};
    double fair = 0;
    auto row = plan.weights.begin();
    for (std::size_t e = 0; e < load_.size(); ++e) {
      if (!could_use(c, EngineIndex(e))) continue;
      while (row != plan.weights.end() && row->engine.at() < e) ++row;
      const bool used = row != plan.weights.end() && row->engine.at() == e;
      const double each = work(plan, EngineIndex(e));
      sent.places.push_back(
          {EngineIndex(e), used ? row->weight : 0, capacity_[e] / (each > 0 ? each : 1.0), each});
      fair += sent.places.back().fair;
    }
    for (Place& place : sent.places) place.fair = fair > 0 ? place.fair / fair : 0;
    if (!sent.places.empty()) rows_.sent.push_back(std::move(sent));
  }

  /// A group is held once on an engine, whichever clusters send to it.
  void memory() {
    std::map<std::tuple<ClassIndex, std::uint64_t, EngineIndex>, double> held;
    for (const auto& s : in_.snapshots)
      for (const auto& row : s.groups) {
        double& tokens = held[{row.request_class, row.group, row.engine}];
        tokens = std::max(tokens, row.prefix_tokens);
      }
    std::map<EngineIndex, double> sums;
    for (const auto& [key, tokens] : held) sums[std::get<2>(key)] += tokens;
    for (const auto& [e, tokens] : sums) {
      if (e.at() >= load_.size() || in_.standings[e.at()].kv_tokens <= 0) continue;
      const double most = in_.policy.cache.group_memory * in_.standings[e.at()].kv_tokens;
      if (tokens > most * (1 + load_tolerance))
        found(Fault::cache_memory, fmt::format("hot groups hold {:.0f} tokens on {}, they may hold {:.0f}",
                                               tokens, engine(e), most));
    }
  }

  bool allowed(ClassIndex c, EngineIndex e) const {
    const auto& row = in_.table.engines[e.at()];
    if (row.cluster.at() >= in_.table.clusters.size()) return false;
    const auto& home = in_.table.clusters[row.cluster.at()];
    return in_.policy.allows(c, {row.rack.str(), home.name.str(), home.region.str(), home.zone.str()});
  }
  bool serves(ClassIndex c, EngineIndex e) const {
    const auto& models = in_.table.engines[e.at()].models;
    return std::find(models.begin(), models.end(), in_.policy.at(in_.policy.at(c).model).name) !=
           models.end();
  }
  bool could_use(ClassIndex c, EngineIndex e) const {
    return factor(e.at()) > 0.0 && allowed(c, e) && serves(c, e);
  }

  /// How late a class is refused: its place in the policy's order.
  std::size_t rank(ClassIndex c) const {
    const auto& order = in_.policy.shed.order;
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), in_.policy.at(c).criticality) -
                                    order.begin());
  }

  void shed_order(const schema::RoutingSnapshot& s) {
    for (std::size_t a = 0; a < plans_.size(); ++a) {
      const ClassIndex refused(a);
      if (!plans_[a].listed || plans_[a].rate <= 0 || plans_[a].admit >= 1.0 - share_tolerance) continue;
      floor(s, refused);
      for (std::size_t b = 0; b < plans_.size(); ++b) {
        const ClassIndex lesser(b);
        if (!plans_[b].listed || plans_[b].rate <= 0 || rank(lesser) >= rank(refused)) continue;
        double usable = 0.0;
        for (const auto& row : plans_[b].weights)
          if (could_use(refused, row.engine)) usable += plans_[b].admit * row.weight;
        if (usable > in_.policy.at(lesser).floor_share + share_tolerance)
          found(Fault::shed_order,
                fmt::format("{}: class {} ({}) is admitted at {:.4f} while class {} ({}) sends {:.4f} of its "
                            "demand to engines that it could use, its floor being {:.4f}",
                            s.cluster, name(refused), name_of(in_.policy.at(refused).criticality),
                            plans_[a].admit, name(lesser), name_of(in_.policy.at(lesser).criticality), usable,
                            in_.policy.at(lesser).floor_share));
      }
    }
  }

  /// A class below its floor needs every engine that it could use to be full. The plan's own capacity counts where it is
  /// lower: KV memory and the batch may bind before the load does.
  void floor(const schema::RoutingSnapshot& s, ClassIndex c) {
    const double share = in_.policy.at(c).floor_share;
    if (plans_[c.at()].admit >= share - share_tolerance) return;
    for (const auto& row : s.prices)
      if (row.engine.at() < load_.size() && could_use(c, row.engine) &&
          row.planned_load < 0.99 * std::min(row.capacity, capacity_[row.engine.at()]))
        return found(Fault::floor,
                     fmt::format("{}: class {} is admitted at {:.4f}, its floor is {:.4f}, and {} carries "
                                 "{:.4f} of {:.4f} s/s",
                                 s.cluster, name(c), plans_[c.at()].admit, share, engine(row.engine),
                                 row.planned_load, capacity_[row.engine.at()]));
  }

  void ceilings() {
    for (std::size_t e = 0; e < load_.size(); ++e)
      if (!(load_[e] <= capacity_[e] * (1.0 + load_tolerance) + 1e-12))
        found(Fault::over_ceiling,
              fmt::format("all clusters together put {:.4f} s/s on {}, it may carry {:.4f}", load_[e],
                          engine(EngineIndex(e)), capacity_[e]));
  }

  const Judged& in_;
  std::vector<double> load_, slowness_, capacity_;  ///< by EngineIndex
  std::vector<ClassPlan> plans_;                    ///< by ClassIndex, of the snapshot being judged
  Rows rows_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> verify(const Judged& judged) { return Verifier(judged).run(); }

}  // namespace signalbox::verify
