#include "actors/global_optimizer/machine/caps.hpp"

#include <algorithm>
#include <numeric>

namespace signalbox::global_optimizer {

namespace {

constexpr double tolerance = 1e-9;
/// Weights below this are rounding.
constexpr double nothing = 1e-13;
/// Engines whose costs differ by less take together, by room.
constexpr double same_cost_s = 1e-6;
constexpr double no_limit = std::numeric_limits<double>::infinity();

/// A row's engines with what is left under the caps of each, of its rack and of its cluster.
class Capped {
 public:
  Capped(std::vector<Share>& row, const Domains& domains, const policy::Limits& limits) : row_(row) {
    add_level({}, limits.engine_weight_cap);
    for (const auto& [level, cap] : limits.domain_caps())
      if (cap) add_level(domains.at(level), cap);
  }

  /// Scales what is over a cap down to it, from the engines outwards; how much was taken away.
  double trim() {
    double before = total();
    for (const Level& level : levels_) {
      const auto sums = sums_of(level);
      for (std::size_t i = 0; i < row_.size(); ++i)
        if (sums[level.group[i]] > level.cap) row_[i].weight *= level.cap / sums[level.group[i]];
    }
    return before - total();
  }

  /// Gives so much to engines with room under all caps, the cheapest first; how much is left over. `free_only`: no engine
  /// gets more than it has free.
  double give(double amount, bool free_only) {
    left_.clear();
    for (const Level& level : levels_) {
      auto left = sums_of(level);
      for (double& l : left) l = level.cap - l;
      left_.push_back(std::move(left));
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < row_.size(); ++i)
      if (row_[i].room > 0) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return row_[i].dearer_s; });
    for (std::size_t from = 0; from < order.size() && amount > nothing;) {
      std::size_t to = from + 1;
      while (to < order.size() && row_[order[to]].dearer_s <= row_[order[from]].dearer_s + same_cost_s) ++to;
      amount = fill({order.begin() + static_cast<std::ptrdiff_t>(from),
                     order.begin() + static_cast<std::ptrdiff_t>(to)},
                    amount, free_only);
      from = to;
    }
    return amount;
  }

  bool keeps() const {
    return std::ranges::all_of(levels_, [&](const Level& level) {
      return std::ranges::all_of(sums_of(level), [&](double sum) { return sum <= level.cap + tolerance; });
    });
  }

 private:
  struct Level {
    std::vector<std::size_t> group;  ///< by place in the row
    std::size_t groups = 0;
    double cap = 1;
  };

  /// `domain`: by engine; empty: each engine is its own.
  void add_level(const std::vector<std::uint32_t>& domain, std::optional<double> cap) {
    Level level{{}, 0, cap.value_or(1.0)};
    for (std::size_t i = 0; i < row_.size(); ++i) {
      level.group.push_back(domain.empty() ? i : domain[row_[i].engine.at()]);
      level.groups = std::max(level.groups, level.group.back() + 1);
    }
    levels_.push_back(std::move(level));
  }
  std::vector<double> sums_of(const Level& level) const {
    std::vector<double> out(level.groups, 0.0);
    for (std::size_t i = 0; i < row_.size(); ++i) out[level.group[i]] += row_[i].weight;
    return out;
  }
  double total() const {
    return std::accumulate(row_.begin(), row_.end(), 0.0,
                           [](double sum, const Share& s) { return sum + s.weight; });
  }

  /// Raises these in proportion to their room until something is full, then the others, until all is given.
  double fill(std::vector<std::size_t> open, double amount, bool free_only) {
    std::vector<double> free(row_.size(), no_limit);
    if (free_only)
      for (const std::size_t i : open) free[i] = row_[i].most;
    while (amount > nothing) {
      std::erase_if(open, [&](std::size_t i) {
        bool full = free[i] <= nothing;
        for (std::size_t l = 0; l < levels_.size(); ++l) full |= left_[l][levels_[l].group[i]] <= nothing;
        return full;
      });
      if (open.empty()) return amount;
      double rooms = 0;
      for (const std::size_t i : open) rooms += row_[i].room;
      double step = amount / rooms;
      for (const std::size_t i : open) step = std::min(step, free[i] / row_[i].room);
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        std::vector<double> rise(levels_[l].groups, 0.0);
        for (const std::size_t i : open) rise[levels_[l].group[i]] += row_[i].room;
        for (std::size_t g = 0; g < rise.size(); ++g)
          if (rise[g] > 0) step = std::min(step, left_[l][g] / rise[g]);
      }
      for (const std::size_t i : open) {
        const double more = step * row_[i].room;
        row_[i].weight += more, free[i] -= more, amount -= more;
        for (std::size_t l = 0; l < levels_.size(); ++l) left_[l][levels_[l].group[i]] -= more;
      }
    }
    return 0;
  }

  std::vector<Share>& row_;
  std::vector<Level> levels_;
  std::vector<std::vector<double>> left_;  ///< by level and group
};

/// What the row gives to all but its n - 1 greatest groups.
double beyond(const std::vector<Share>& row, const std::vector<std::uint32_t>& domain, std::uint32_t n) {
  std::vector<std::pair<std::uint32_t, double>> used;
  double total = 0;
  for (const Share& s : row)
    if (s.weight != 0)
      used.emplace_back(domain.empty() ? s.engine.value : domain[s.engine.at()], s.weight), total += s.weight;
  std::ranges::stable_sort(used, {}, &std::pair<std::uint32_t, double>::first);
  std::vector<double> sums;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (i > 0 && used[i].first == used[i - 1].first)
      sums.back() += used[i].second;
    else
      sums.push_back(used[i].second);
  std::ranges::sort(sums, std::greater<>{});
  for (std::size_t i = 0; i + 1 < n && i < sums.size(); ++i) total -= sums[i];
  return total;
}

/// Raises the fewest engines that make up the number to the share that counts; false if there are not so many.
bool widen(std::vector<Share>& row, const std::vector<std::uint32_t>& rack, const policy::ClassRow& c) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (row[i].room > 0 || row[i].weight > 0) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::tuple(-row[a].weight, row[a].dearer_s, -row[a].room) <
           std::tuple(-row[b].weight, row[b].dearer_s, -row[b].room);
  });
  std::vector<bool> chosen(row.size());
  std::map<std::uint32_t, bool> racks;
  std::uint32_t engines = 0;
  const auto choose = [&](std::size_t i) {
    chosen[i] = true, racks[rack[row[i].engine.at()]] = true;
    ++engines;
  };
  for (const std::size_t i : order)
    if (racks.size() < c.spread_racks && !racks.contains(rack[row[i].engine.at()])) choose(i);
  for (const std::size_t i : order)
    if (engines < c.spread_engines && !chosen[i]) choose(i);
  double above = 0, total = 0;
  const auto least = [&](std::size_t i) { return chosen[i] ? policy::spread_rest : 0.0; };
  for (std::size_t i = 0; i < row.size(); ++i)
    total += row[i].weight, above += std::max(0.0, row[i].weight - least(i));
  const double keep = (total - policy::spread_rest * engines) / above;
  if (above > 0 && keep < 1)
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i].weight = least(i) + keep * std::max(0.0, row[i].weight - least(i));
  return racks.size() >= c.spread_racks && engines >= c.spread_engines;
}

/// What changed between two states of a row, as rows that say so.
void say_moved(const std::vector<double>& before, const std::vector<Share>& row, ClassIndex c,
               const std::vector<schema::PolicyLimit>& limit, std::vector<schema::LimitRow>& out) {
  for (std::size_t i = 0; i < row.size(); ++i)
    if (const double moved = row[i].weight - before[i]; std::abs(moved) > 1e-6)
      out.push_back({c, row[i].engine, limit[i], std::clamp(moved, -1.0, 1.0), true});
}

void say_not_held(const std::vector<Share>& row, ClassIndex c, schema::PolicyLimit limit,
                  std::vector<schema::LimitRow>& out) {
  const auto heaviest = std::ranges::max_element(row, {}, &Share::weight);
  if (heaviest != row.end() && heaviest->weight > 0) out.push_back({c, heaviest->engine, limit, 0, false});
}

std::vector<double> weights_of(const std::vector<Share>& row) {
  std::vector<double> out;
  for (const Share& share : row) out.push_back(share.weight);
  return out;
}

}  // namespace

bool keeps_caps(const std::vector<Share>& row, const Domains& domains, const policy::Limits& limits) {
  std::vector<Share> copy = row;
  return Capped(copy, domains, limits).keeps();
}

bool keeps_spread(const std::vector<Share>& row, const Domains& domains, const policy::ClassRow& c) {
  if (c.spread_engines <= 1) return true;
  const double least = policy::spread_rest - tolerance;
  return beyond(row, {}, c.spread_engines) >= least && beyond(row, domains.rack(), c.spread_racks) >= least;
}

void hold_caps(std::vector<Share>& row, const Domains& domains, const policy::Limits& limits) {
  if (!limits.caps_weights()) return;
  Capped capped(row, domains, limits);
  double excess = capped.trim();
  if (excess <= nothing) return;
  excess = capped.give(excess, true);
  if (excess > nothing) excess = capped.give(excess, false);
  double rooms = 0;
  for (const Share& share : row) rooms += share.room;
  for (Share& share : row)
    if (rooms > 0) share.weight += excess * share.room / rooms;
}

void hold_row(std::vector<Share>& row, const Domains& domains, const policy::CompiledPolicy& policy,
              ClassIndex c, std::vector<schema::LimitRow>& binding) {
  const policy::Limits& limits = policy.limits;
  const policy::ClassRow& of = policy.at(c);
  auto before = weights_of(row);
  std::vector<schema::PolicyLimit> which(row.size(), schema::PolicyLimit::domain_cap);
  for (std::size_t i = 0; i < row.size(); ++i)
    if (before[i] > limits.engine_weight_cap.value_or(1.0) || !limits.caps_domains())
      which[i] = schema::PolicyLimit::weight_cap;
  hold_caps(row, domains, limits);
  say_moved(before, row, c, which, binding);
  if (!keeps_caps(row, domains, limits)) {
    const bool engine = std::ranges::any_of(
        row, [&](const Share& s) { return s.weight > limits.engine_weight_cap.value_or(1.0) + tolerance; });
    return say_not_held(row, c, engine ? schema::PolicyLimit::weight_cap : schema::PolicyLimit::domain_cap,
                        binding);
  }
  if (keeps_spread(row, domains, of)) return;
  before = weights_of(row);
  const bool enough = widen(row, domains.rack(), of);
  hold_caps(row, domains, limits);
  const auto both = [&](const std::vector<Share>& r) {
    return keeps_caps(r, domains, limits) && keeps_spread(r, domains, of);
  };
  if (enough && !both(row)) {  // what one limit moves, the other moves back
    for (std::size_t i = 0; i < row.size(); ++i) row[i].weight = before[i];
    const auto at = [&](double mixture) {
      auto out = row;
      for (Share& share : out) share.weight = mixed(share, mixture);
      return out;
    };
    if (const auto mixture = least_mixture([&](double m) { return both(at(m)); })) row = at(*mixture);
  }
  say_moved(before, row, c, std::vector(row.size(), schema::PolicyLimit::spread), binding);
  if (!both(row)) say_not_held(row, c, schema::PolicyLimit::spread, binding);
}

}  // namespace signalbox::global_optimizer
