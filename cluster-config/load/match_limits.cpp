#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cluster-config/load/load.hpp"

namespace signalbox::config {
namespace {

using policy::DomainLevel;

/// The engines that may serve one class, when all of them are in service.
class Servers {
 public:
  Servers(const Config& config, const policy::CompiledPolicy& policy, ClassIndex index)
      : config_(config), policy_(policy), row_(policy.at(index)) {
    for (const Engine& engine : config.engines) {
      const Cluster& home = *config.find_cluster(engine.cluster);
      if (std::ranges::binary_search(engine.models, policy.at(row_.model).name) &&
          policy.allows(index, {engine.rack.str(), home.name.str(), home.region.str(), home.zone.str()}))
        engines_.push_back(&engine);
    }
  }

  void check(std::vector<Mistake>& out) const {
    if (engines_.empty()) return;  // match() says so
    spread(out);
    caps(out);
    for (const policy::Survive& limit : policy_.limits.survive) survive(limit, out);
  }

 private:
  std::string domain(const Engine& engine, DomainLevel level) const {
    switch (level) {
      case DomainLevel::cluster: return engine.cluster.str();
      case DomainLevel::region: return config_.find_cluster(engine.cluster)->region.str();
      case DomainLevel::zone: return config_.find_cluster(engine.cluster)->zone.str();
      default: return engine.rack.str();
    }
  }
  std::set<std::string> domains(DomainLevel level) const {
    std::set<std::string> out;
    for (const Engine* engine : engines_) out.insert(domain(*engine, level));
    return out;
  }

  void spread(std::vector<Mistake>& out) const {
    const auto racks = domains(DomainLevel::rack);
    if (engines_.size() < row_.spread_engines)
      out.push_back({{1, 1},
                     fmt::format("line {} of the policy spreads class '{}' over {} engines; {} may serve it",
                                 row_.spread_line, row_.name, row_.spread_engines, engines_.size()),
                     "add engines with its model, or lower the limit"});
    else if (racks.size() < row_.spread_racks)
      out.push_back(
          {{1, 1},
           fmt::format("line {} of the policy spreads class '{}' over {} racks; the engines that may "
                       "serve it stand in {}: {}",
                       row_.spread_line, row_.name, row_.spread_racks, racks.size(), fmt::join(racks, ", ")),
           "add engines with its model in other racks, or lower the limit"});
  }

  void caps(std::vector<Mistake>& out) const {
    const policy::Limits& limits = policy_.limits;
    struct Domain {
      const Engine* member;
      double takes = 0;
    };
    std::vector<Domain> inner;
    for (const Engine* engine : engines_) inner.push_back({engine, limits.engine_weight_cap.value_or(1.0)});
    for (const auto& [level, cap] : limits.domain_caps()) {
      std::map<std::string, Domain> outer;
      for (const Domain& d : inner) {
        Domain& in = outer[domain(*d.member, level)];
        in.member = d.member, in.takes += d.takes;
      }
      inner.clear();
      for (const auto& [name, d] : outer) inner.push_back({d.member, std::min(d.takes, cap.value_or(1.0))});
    }
    double takes = 0;
    for (const Domain& d : inner) takes += d.takes;
    if (takes < 1 - 1e-9)
      out.push_back(
          {{1, 1},
           fmt::format("the policy's caps on weights let the engines that may serve class '{}' take "
                       "only {:.4g} % of it",
                       row_.name, 100 * takes),
           "add engines with its model, or raise the caps: weight(engine), weight(rack) and so on"});
  }

  void survive(const policy::Survive& limit, std::vector<Mistake>& out) const {
    const auto all = domains(limit.level);
    if (row_.criticality < limit.from || all.size() > 1) return;
    out.push_back(
        {{1, 1},
         fmt::format("line {} of the policy wants class '{}' to survive the loss of a {}; all engines that "
                     "may serve it lie in {}",
                     limit.line, row_.name, name_of(limit.level), *all.begin()),
         fmt::format("add engines with its model in another {}, or leave the limit out",
                     name_of(limit.level))});
  }

  const Config& config_;
  const policy::CompiledPolicy& policy_;
  const policy::ClassRow& row_;
  std::vector<const Engine*> engines_;
};

}  // namespace

std::vector<Mistake> match_limits(const Config& config, const policy::CompiledPolicy& policy) {
  std::vector<Mistake> out = match_reserves(config, policy);
  if (!policy.limits_rows()) return out;
  for (std::size_t c = 0; c < policy.classes.size(); ++c) Servers(config, policy, ClassIndex(c)).check(out);
  return out;
}

}  // namespace signalbox::config
