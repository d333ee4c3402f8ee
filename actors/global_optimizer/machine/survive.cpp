#include "actors/global_optimizer/machine/survive.hpp"

#include <algorithm>
#include <limits>

#include "actors/global_optimizer/machine/caps.hpp"
#include "actors/global_optimizer/machine/ceilings.hpp"
#include "actors/global_optimizer/machine/domains.hpp"

namespace signalbox::global_optimizer {

namespace {

constexpr double tolerance = 1e-7;
/// Less is not mixed in: an engine that is to take over should not be known by a thousandth of the requests only.
constexpr double least_worth_mixing = 0.02;

}  // namespace

class Survival {
  /// One row of a snapshot, dense over the engines that its class may use now.
  struct Row {
    std::size_t snapshot = 0;
    ClassIndex of;
    double rate_per_s = 0;
    std::vector<Share> shares;
    std::vector<double> work_s;  ///< of one request, beside shares
  };

  /// A level whose loss is to be survived.
  struct Level {
    policy::Survive limit;
    std::vector<std::uint32_t> domain;  ///< by EngineIndex
  };

 public:
  Survival(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts)
      : plan_(plan), facts_(facts), domains_(*facts.table) {
    for (const policy::Survive& limit : facts.policy->limits.survive) {
      levels_.push_back({limit, domains_of(*facts.table, limit.level)});
      from_ = std::min(from_, limit.from);
    }
    for (std::size_t s = 0; s < plan.size(); ++s)
      for (const schema::AdmitRow& admit : plan[s].admits)
        if (admit.planned_rps * admit.admit > 0) read_row(s, admit);
  }

  void run() {
    const bool may_mix = fair_rows_keep_limits();
    std::vector<const Level*> promised;
    for (const Level& level : levels_)
      if (may_mix && survives(level, 1)) promised.push_back(&level);
    const auto all_survive = [&](double mixture) {
      return std::ranges::all_of(promised, [&](const Level* level) { return survives(*level, mixture); });
    };
    if (!all_survive(0))
      if (const auto least = least_mixture(all_survive)) {
        const double more = std::max(*least, least_worth_mixing);
        const double mixture = all_survive(more) ? more : *least;
        for (Row& row : rows_)
          if (is_critical(row)) mix(row, mixture);
        make_room();
        write();
      }
    for (const Level& level : levels_)
      if (!survives(level, 0)) say_not_held(level);
  }

  bool keeps_promises() const {
    return !fair_rows_keep_limits() || std::ranges::all_of(levels_, [this](const Level& level) {
      return !survives(level, 1) || survives(level, 0);
    });
  }

  /// Of the plan as it is: what forbids() asks.
  void remember_promises() {
    if (!fair_rows_keep_limits()) return;
    for (const Level& level : levels_) {
      if (!survives(level, 1)) continue;
      Promise promise{&level, std::vector<double>(facts_.fleet.engines.size(), 0.0)};
      for (const Row& row : rows_)
        if (is_meant(row, level)) add_worst(row, level, 0, promise.load);
      if (fits(promise.load)) promises_.push_back(std::move(promise));
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) row_at_[{rows_[r].snapshot, rows_[r].of}] = r;
  }

  bool forbids(std::size_t snapshot, ClassIndex c, EngineIndex from, EngineIndex to, double step) const {
    const auto at = row_at_.find({snapshot, c});
    if (at == row_at_.end()) return false;
    const Row& before = rows_[at->second];
    const Row after = moved(before, from, to, step);
    return std::ranges::any_of(promises_, [&](const Promise& promise) {
      if (!is_meant(before, *promise.level)) return false;
      const auto was = worst_of(before, *promise.level, 0), is = worst_of(after, *promise.level, 0);
      for (std::size_t i = 0; i < is.size(); ++i) {
        const EngineIndex e = before.shares[i].engine;
        if (promise.load[e.at()] - was[i] + is[i] > load_ceiling(facts_, e) * (1 + tolerance)) return true;
      }
      return false;
    });
  }

  void move(std::size_t snapshot, ClassIndex c, EngineIndex from, EngineIndex to, double step) {
    const auto at = row_at_.find({snapshot, c});
    if (at == row_at_.end()) return;
    Row& row = rows_[at->second];
    Row after = moved(row, from, to, step);
    for (Promise& promise : promises_) {
      if (!is_meant(row, *promise.level)) continue;
      const auto was = worst_of(row, *promise.level, 0), is = worst_of(after, *promise.level, 0);
      for (std::size_t i = 0; i < is.size(); ++i) promise.load[row.shares[i].engine.at()] += is[i] - was[i];
    }
    row = std::move(after);
  }

 private:
  static Row moved(Row row, EngineIndex from, EngineIndex to, double step) {
    for (Share& share : row.shares)
      share.weight += share.engine == to ? step : share.engine == from ? -step : 0;
    return row;
  }

  /// A level that the plan survives, and what its engines would be asked for.
  struct Promise {
    const Level* level;
    std::vector<double> load;  ///< by EngineIndex
  };

  bool is_critical(const Row& row) const { return facts_.policy->at(row.of).criticality >= from_; }

  void read_row(std::size_t s, const schema::AdmitRow& admit) {
    Row row{s, admit.request_class, admit.planned_rps * admit.admit, {}, {}};
    const auto& weights = plan_[s].weights;
    for (const EngineIndex e : facts_.allowed[row.of.at()]) {
      if (facts_.fleet.engines[e.at()].availability <= 0) continue;
      Share share;
      share.engine = e;
      const auto at = std::ranges::lower_bound(weights, std::pair(row.of, e), {}, [](const auto& w) {
        return std::pair(w.request_class, w.engine);
      });
      if (at != weights.end() && at->request_class == row.of && at->engine == e) share.weight = at->weight;
      row.work_s.push_back(std::max(work_of(facts_, admit, e), 1e-12));
      share.room = load_ceiling(facts_, e) / row.work_s.back();
      row.shares.push_back(share);
    }
    share_fairly(row.shares, facts_, admit);
    if (!row.shares.empty()) rows_.push_back(std::move(row));
  }

  bool fair_rows_keep_limits() const {
    return std::ranges::all_of(rows_, [&](const Row& row) {
      if (!is_critical(row)) return true;
      auto fair = row.shares;
      for (Share& share : fair) share.weight = share.fair;
      return keeps_caps(fair, domains_, facts_.policy->limits) &&
             keeps_spread(fair, domains_, facts_.policy->at(row.of));
    });
  }

  bool survives(const Level& level, double mixture) const {
    std::vector<double> load(facts_.fleet.engines.size(), 0.0);
    for (const Row& row : rows_)
      if (is_meant(row, level)) add_worst(row, level, mixture, load);
    return fits(load);
  }
  bool is_meant(const Row& row, const Level& level) const {
    return facts_.policy->at(row.of).criticality >= level.limit.from;
  }
  bool fits(const std::vector<double>& load) const {
    for (std::size_t e = 0; e < load.size(); ++e)
      if (load[e] > load_ceiling(facts_, EngineIndex(e)) * (1 + tolerance)) return false;
    return true;
  }
  static void add_worst(const Row& row, const Level& level, double mixture, std::vector<double>& load) {
    const auto asked = worst_of(row, level, mixture);
    for (std::size_t i = 0; i < asked.size(); ++i) load[row.shares[i].engine.at()] += asked[i];
  }

  /// What the row asks of each of its engines when it has lost its worst domain that the engine is not in.
  static std::vector<double> worst_of(const Row& row, const Level& level, double mixture) {
    std::vector<double> out(row.shares.size(), 0.0);
    std::map<std::uint32_t, double> sums;
    for (const Share& share : row.shares) sums[level.domain[share.engine.at()]] += mixed(share, mixture);
    double first = 0, second = 0;
    std::uint32_t worst = 0;
    for (const auto& [domain, sum] : sums)
      if (sum > first)
        second = first, first = sum, worst = domain;
      else
        second = std::max(second, sum);
    if (sums.size() == 1) first = 0;
    for (std::size_t i = 0; i < row.shares.size(); ++i) {
      const Share& share = row.shares[i];
      const double weight = mixed(share, mixture);
      if (sums.size() > 1 && first > 1 - 1e-9 && level.domain[share.engine.at()] == worst)
        out[i] = std::numeric_limits<double>::infinity();  // nobody else knows the row
      const double lost = level.domain[share.engine.at()] == worst ? second : first;
      if (weight > 0) out[i] += row.rate_per_s * row.work_s[i] * weight / std::max(1 - lost, 1e-12);
    }
    return out;
  }

  void mix(Row& row, double mixture) {
    for (Share& share : row.shares) {
      const double weight = mixed(share, mixture);
      if (std::abs(weight - share.weight) > 1e-6)
        plan_[row.snapshot].limits.push_back({row.of, share.engine, schema::PolicyLimit::survival,
                                              std::clamp(weight - share.weight, -1.0, 1.0), true});
      share.weight = weight;
    }
  }

  /// Takes the other classes away from engines that are asked for too much, towards those of their rows that have room.
  void make_room() {
    std::vector<double> free;
    for (std::size_t e = 0; e < facts_.fleet.engines.size(); ++e)
      free.push_back(load_ceiling(facts_, EngineIndex(e)));
    const auto charge = [&](const Row& row, double sign) {
      for (std::size_t i = 0; i < row.shares.size(); ++i)
        free[row.shares[i].engine.at()] -= sign * row.rate_per_s * row.work_s[i] * row.shares[i].weight;
    };
    for (const Row& row : rows_) charge(row, 1);
    for (Row& row : rows_) {
      if (is_critical(row)) continue;
      double over = 0;
      for (std::size_t i = 0; i < row.shares.size(); ++i) {
        Share& share = row.shares[i];
        const double excess = -free[share.engine.at()] / (row.rate_per_s * row.work_s[i]);
        if (excess <= 0 || share.weight <= 0) continue;
        const double less = std::min(excess, share.weight);
        share.weight -= less, over += less;
        free[share.engine.at()] += less * row.rate_per_s * row.work_s[i];
      }
      if (over <= 0) continue;
      double rooms = 0;
      std::vector<double> room;
      for (std::size_t i = 0; i < row.shares.size(); ++i)
        rooms += room.emplace_back(std::max(0.0, free[row.shares[i].engine.at()]) / row.work_s[i]);
      for (std::size_t i = 0; i < row.shares.size(); ++i) {
        const double more = over * (rooms > 0 ? room[i] / rooms : row.shares[i].fair);
        row.shares[i].weight += more;
        free[row.shares[i].engine.at()] -= more * row.rate_per_s * row.work_s[i];
      }
      hold_row(row.shares, domains_, *facts_.policy, row.of, plan_[row.snapshot].limits);
    }
  }

  void write() {
    for (const Row& row : rows_) {
      auto& weights = plan_[row.snapshot].weights;
      const auto [from, to] =
          std::ranges::equal_range(weights, row.of, {}, &schema::WeightRow::request_class);
      const std::vector<schema::WeightRow> old(from, to);
      std::vector<schema::WeightRow> fresh;
      for (const Share& share : row.shares) {
        if (share.weight <= 0) continue;
        const auto was = std::ranges::find(old, share.engine, &schema::WeightRow::engine);
        fresh.push_back({row.of, share.engine, share.weight, was == old.end() ? 0 : was->planned_inflight});
      }
      const auto place = weights.erase(from, to);
      weights.insert(place, fresh.begin(), fresh.end());
    }
  }

  void say_not_held(const Level& level) {
    for (const Row& row : rows_)
      if (facts_.policy->at(row.of).criticality >= level.limit.from) {
        const auto heaviest = std::ranges::max_element(row.shares, {}, &Share::weight);
        plan_[row.snapshot].limits.push_back(
            {row.of, heaviest->engine, schema::PolicyLimit::survival, 0, false});
      }
  }

  std::vector<schema::RoutingSnapshot>& plan_;
  const Facts& facts_;
  const Domains domains_;
  std::vector<Level> levels_;
  std::vector<Row> rows_;
  std::vector<Promise> promises_;
  std::map<std::pair<std::size_t, ClassIndex>, std::size_t> row_at_;
  Criticality from_ = Criticality::critical;
};

void hold_survival(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts) {
  if (!facts.policy->limits.survive.empty()) Survival(plan, facts).run();
}

bool keeps_survival(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts) {
  return facts.policy->limits.survive.empty() || Survival(plan, facts).keeps_promises();
}

SurvivalProbe::SurvivalProbe(std::vector<schema::RoutingSnapshot>& plan, const Facts& facts) {
  if (facts.policy->limits.survive.empty()) return;
  survival_ = std::make_unique<Survival>(plan, facts);
  survival_->remember_promises();
}
SurvivalProbe::~SurvivalProbe() = default;

bool SurvivalProbe::forbids(std::size_t snapshot, ClassIndex c, EngineIndex from, EngineIndex to,
                            double step) const {
  return survival_ && survival_->forbids(snapshot, c, from, to, step);
}

void SurvivalProbe::move(std::size_t snapshot, ClassIndex c, EngineIndex from, EngineIndex to, double step) {
  if (survival_) survival_->move(snapshot, c, from, to, step);
}

}  // namespace signalbox::global_optimizer
