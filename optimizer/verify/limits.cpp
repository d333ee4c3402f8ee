#include "optimizer/verify/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace signalbox::verify {
namespace {

/// Weights and loads are divided and added some thousand times. What is asked for must be kept with that tolerance; whether it can be
/// asked for is judged as much more strictly.
constexpr double tolerance = 1e-6;

/// The weights that are judged.
struct View {
  double Place::*weight;
  double slack;
};
constexpr View published{&Place::weight, tolerance}, by_capacity{&Place::fair, -tolerance};
/// Plans that were shortened for churn are judged by this: what they break excuses them.
constexpr View shortened_row{&Place::weight, 1e-8};

struct Domains {
  std::vector<std::uint32_t> of;  ///< by EngineIndex
  std::vector<std::string> names;
};

class Checker {
 public:
  Checker(const Rows& rows, const std::function<void(Fault, std::string)>& found)
      : rows_(rows), limits_(rows.policy.limits), found_(found) {
    for (const auto& [level, cap] : limits_.domain_caps()) {
      std::map<std::string, std::uint32_t> known;
      Domains domains;
      for (std::size_t e = 0; e < rows.table.engines.size(); ++e) {
        const auto [at, fresh] = known.emplace(name_of_domain(e, level), domains.names.size());
        if (fresh) domains.names.push_back(at->first);
        domains.of.push_back(at->second);
      }
      domains_.push_back(std::move(domains));
    }
  }

  void run() {
    for (const Sent& sent : rows_.sent) {
      caps(sent);
      spread(sent);
    }
    for (const policy::Survive& limit : limits_.survive) survive(limit);
    churn();
  }

 private:
  std::string name_of_domain(std::size_t e, policy::DomainLevel level) const {
    const schema::EngineRow& engine = rows_.table.engines[e];
    const schema::ClusterRow& home = rows_.table.clusters[engine.cluster.at()];
    switch (level) {
      case policy::DomainLevel::cluster: return home.name.str();
      case policy::DomainLevel::region: return home.region.str();
      case policy::DomainLevel::zone: return home.zone.str();
      default: return engine.rack.empty() ? engine.name.str() : engine.rack.str();
    }
  }
  const Domains& at(policy::DomainLevel level) const { return domains_[static_cast<std::size_t>(level)]; }
  std::uint32_t domain(EngineIndex e, policy::DomainLevel level) const { return at(level).of[e.at()]; }
  /// By domain that an engine of the row stands in, in no order.
  std::vector<std::pair<std::uint32_t, double>> sums(const Sent& sent, policy::DomainLevel level, View view) {
    constexpr double unseen = -1;
    scratch_.assign(std::max(scratch_.size(), at(level).names.size()), unseen);
    std::vector<std::pair<std::uint32_t, double>> out;
    for (const Place& place : sent.places) {
      const std::uint32_t d = domain(place.engine, level);
      if (scratch_[d] == unseen) scratch_[d] = static_cast<double>(out.size()), out.emplace_back(d, 0.0);
      out[static_cast<std::size_t>(scratch_[d])].second += place.*view.weight;
    }
    return out;
  }
  std::string title(const Sent& sent) const {
    return fmt::format("{}: class {}", sent.cluster, rows_.policy.at(sent.of).name);
  }

  // ---------------------------------------------------------------------------------------------------------- caps
  /// How much of a row its engines can take under the caps: domains are nested, so the sums of the lesser ones tell.
  double takes(const Sent& sent) {
    constexpr double unseen = -1;
    std::vector<std::pair<EngineIndex, double>>
        inner;  // an engine of each domain, and what the domain can take
    for (const Place& place : sent.places)
      inner.emplace_back(place.engine, limits_.engine_weight_cap.value_or(1.0));
    for (const auto& [level, cap] : limits_.domain_caps()) {
      scratch_.assign(std::max(scratch_.size(), at(level).names.size()), unseen);
      std::vector<std::pair<EngineIndex, double>> outer;
      for (const auto& [member, most] : inner) {
        double& place = scratch_[domain(member, level)];
        if (place == unseen) place = static_cast<double>(outer.size()), outer.emplace_back(member, 0.0);
        outer[static_cast<std::size_t>(place)].second += most;
      }
      for (auto& [member, most] : outer) most = std::min(most, cap.value_or(1.0));
      inner = std::move(outer);
    }
    double out = 0;
    for (const auto& [member, most] : inner) out += most;
    return out;
  }

  /// What of a row is above its cap, in words; empty: nothing.
  std::string above_cap(const Sent& sent, View view) {
    const auto over = [&](double sum, double cap) { return sum > cap + view.slack; };
    for (const Place& place : sent.places)
      if (limits_.engine_weight_cap && over(place.*view.weight, *limits_.engine_weight_cap))
        return fmt::format("gives {} {:.4f}, its cap is {}", rows_.table.engines[place.engine.at()].name,
                           place.*view.weight, *limits_.engine_weight_cap);
    for (const auto& [level, cap] : limits_.domain_caps())
      if (cap)
        for (const auto& [place, sum] : sums(sent, level, view))
          if (over(sum, *cap))
            return fmt::format("gives {} {} {:.4f}, its cap is {}", name_of(level), at(level).names[place],
                               sum, *cap);
    return {};
  }

  void caps(const Sent& sent) {
    if (!limits_.caps_weights() || takes(sent) < 1.0) return;
    const std::string above = above_cap(sent, published);
    if (!above.empty()) found_(Fault::weight_cap, fmt::format("{} {}", title(sent), above));
  }

  // -------------------------------------------------------------------------------------------------------- spread
  static double beyond(std::vector<double> sums, std::uint32_t n) {
    std::ranges::sort(sums, std::greater<>{});
    double out = 0;
    for (std::size_t i = n - 1; i < sums.size(); ++i) out += sums[i];
    return out;
  }
  bool is_spread(const Sent& sent, View view) {
    const policy::ClassRow& c = rows_.policy.at(sent.of);
    std::vector<double> engines, racks;
    for (const Place& place : sent.places) engines.push_back(place.*view.weight);
    for (const auto& [rack, sum] : sums(sent, policy::DomainLevel::rack, view)) racks.push_back(sum);
    const double least = policy::spread_rest - view.slack;
    return beyond(engines, c.spread_engines) >= least && beyond(racks, c.spread_racks) >= least;
  }
  /// A row sent by capacity keeps caps and spread: then a plan can keep both.
  bool fair_keeps_both(const Sent& sent) {
    return above_cap(sent, by_capacity).empty() &&
           (rows_.policy.at(sent.of).spread_engines <= 1 || is_spread(sent, by_capacity));
  }

  void spread(const Sent& sent) {
    const policy::ClassRow& c = rows_.policy.at(sent.of);
    if (c.spread_engines <= 1 || sent.places.size() < c.spread_engines) return;
    if (sums(sent, policy::DomainLevel::rack, published).size() < c.spread_racks) return;
    if (limits_.caps_weights() && !fair_keeps_both(sent)) return;
    if (!is_spread(sent, published))
      found_(Fault::spread,
             fmt::format("{} is not spread over {} engines and {} racks: all but the greatest get less than "
                         "{} of it together",
                         title(sent), c.spread_engines, c.spread_racks, policy::spread_rest));
  }

  // ------------------------------------------------------------------------------------------------------ survival
  bool is_meant(const policy::Survive& limit, const Sent& sent) const {
    return rows_.policy.at(sent.of).criticality >= limit.from && sent.rate_per_s > 0;
  }

  /// The first engine that would be asked for more than it may, were one domain lost, or each row's worst; empty: none.
  std::string overloaded(const policy::Survive& limit, View view) {
    std::vector<double> load(rows_.ceiling.size(), 0.0);
    for (const Sent& sent : rows_.sent) {
      if (!is_meant(limit, sent)) continue;
      const auto sum = sums(sent, limit.level, view);
      if (sum.size() < 2) {  // it has nowhere to go
        for (const Place& p : sent.places) load[p.engine.at()] += sent.rate_per_s * p.work_s * p.*view.weight;
        continue;
      }
      std::vector<std::pair<double, std::uint32_t>> greatest;
      for (const auto& [place, share] : sum) {
        if (share > 1 - 1e-9)
          return fmt::format("{} is served in {} {} alone", title(sent), name_of(limit.level),
                             at(limit.level).names[place]);
        greatest.emplace_back(share, place);
      }
      std::ranges::partial_sort(greatest, greatest.begin() + 2, std::greater<>{});
      for (const Place& p : sent.places) {
        const bool in_greatest = domain(p.engine, limit.level) == greatest[0].second;
        const double lost = greatest[in_greatest ? 1 : 0].first;
        load[p.engine.at()] += sent.rate_per_s * p.work_s * p.*view.weight / (1 - lost);
      }
    }
    for (std::size_t e = 0; e < load.size(); ++e)
      if (load[e] > rows_.ceiling[e] * (1 + view.slack) + 1e-12)
        return fmt::format("{} would be asked for {:.4f} s/s of {:.4f}", rows_.table.engines[e].name, load[e],
                           rows_.ceiling[e]);
    return {};
  }

  void survive(const policy::Survive& limit) {
    const std::string what = overloaded(limit, published);
    if (what.empty()) return;
    for (const Sent& sent : rows_.sent)
      if (is_meant(limit, sent) && !fair_keeps_both(sent)) return;
    if (!overloaded(limit, by_capacity).empty()) return;  // even by capacity it would be too much
    found_(Fault::survival, fmt::format("with a {} lost, {}", name_of(limit.level), what));
  }

  // ---------------------------------------------------------------------------------------------------------- churn
  /// The row as far as it may go from the weights in force; empty: it goes no farther.
  static std::vector<Place> shortened(const Sent& sent, const Before& before) {
    double sum = 0, moved = 0;
    const auto old = [&](const Place& place) {
      const auto at = before.weights.find(place.engine);
      return at == before.weights.end() ? 0.0 : at->second;
    };
    for (const Place& place : sent.places) sum += old(place);
    if (sum <= 0) return {};
    for (const Place& place : sent.places) moved += std::abs(place.weight - old(place) / sum);
    if (moved <= before.may_move + tolerance) return {};
    std::vector<Place> out = sent.places;
    for (Place& place : out)
      place.weight = old(place) / sum + before.may_move / moved * (place.weight - old(place) / sum);
    return out;
  }

  /// A row may go on where it would have to stop short of what other limits ask for.
  void churn() {
    Rows held = rows_;
    std::vector<std::string> found;
    for (std::size_t i = 0; i < rows_.sent.size(); ++i) {
      const Sent& sent = rows_.sent[i];
      const auto before = std::ranges::find_if(
          rows_.before, [&](const Before& b) { return b.cluster == sent.cluster && b.of == sent.of; });
      if (before == rows_.before.end()) continue;
      auto places = shortened(sent, *before);
      if (places.empty()) continue;
      held.sent[i].places = std::move(places);
      const bool spread_out = rows_.policy.at(sent.of).spread_engines > 1;
      if (!above_cap(held.sent[i], shortened_row).empty() ||
          (spread_out && !is_spread(held.sent[i], shortened_row)))
        held.sent[i] = sent;
      else
        found.push_back(
            fmt::format("{} moves more than {:.4f} of its weights", title(sent), before->may_move));
    }
    if (found.empty() || overloads(held)) return;
    Checker other(held, found_);
    for (const policy::Survive& limit : limits_.survive)
      if (!other.overloaded(limit, shortened_row).empty()) return;
    for (std::string& text : found) found_(Fault::churn, std::move(text));
  }
  static bool overloads(const Rows& rows) {
    std::vector<double> load(rows.ceiling.size(), 0.0);
    for (const Sent& sent : rows.sent)
      for (const Place& p : sent.places) load[p.engine.at()] += sent.rate_per_s * p.work_s * p.weight;
    for (std::size_t e = 0; e < load.size(); ++e)
      if (load[e] > rows.ceiling[e] * (1 + shortened_row.slack)) return true;
    return false;
  }

  const Rows& rows_;
  const policy::Limits& limits_;
  std::vector<Domains> domains_;  ///< by DomainLevel
  std::vector<double> scratch_;
  const std::function<void(Fault, std::string)>& found_;
};

}  // namespace

void check_limits(const Rows& rows, const std::function<void(Fault, std::string)>& found) {
  Checker(rows, found).run();
}

}  // namespace signalbox::verify
