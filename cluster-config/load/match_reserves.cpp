// The policy's `capacity`: a maximum flow from classes to the engines that may serve them, all in tokens per second. What an engine carries is
// counted as if every token were generated, which costs it more than reading one: at its load ceiling, or with its greatest batch.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "cluster-config/load/load.hpp"

namespace signalbox::config {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Dinic's algorithm.
class Network {
 public:
  explicit Network(std::size_t nodes) : edges_of_(nodes) {}

  void add(std::size_t from, std::size_t to, double capacity) {
    edges_of_[from].push_back(edges_.size()), edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size()), edges_.push_back({from, 0});
  }
  /// How much more goes from one to the other.
  double push(std::size_t from, std::size_t to) {
    double out = 0;
    while (rank_nodes(from, to)) {
      next_.assign(edges_of_.size(), 0);
      while (const double more = push_one(from, to, infinite)) out += more;
    }
    return out;
  }

 private:
  struct Edge {
    std::size_t to;
    double left;
  };

  bool rank_nodes(std::size_t from, std::size_t to) {
    rank_.assign(edges_of_.size(), 0);
    rank_[from] = 1;
    std::vector<std::size_t> queue{from};
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const std::size_t e : edges_of_[queue[i]])
        if (edges_[e].left > 0 && rank_[edges_[e].to] == 0)
          rank_[edges_[e].to] = rank_[queue[i]] + 1, queue.push_back(edges_[e].to);
    return rank_[to] != 0;
  }
  double push_one(std::size_t from, std::size_t to, double most) {
    if (from == to) return most;
    for (std::size_t& i = next_[from]; i < edges_of_[from].size(); ++i) {
      const std::size_t e = edges_of_[from][i];
      if (edges_[e].left <= 0 || rank_[edges_[e].to] != rank_[from] + 1) continue;
      if (const double pushed = push_one(edges_[e].to, to, std::min(most, edges_[e].left)); pushed > 0) {
        edges_[e].left -= pushed, edges_[e ^ 1].left += pushed;
        return pushed;
      }
    }
    return 0;
  }

  std::vector<Edge> edges_;  ///< each beside its reverse
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<std::size_t> rank_, next_;
};

class Reserves {
 public:
  Reserves(const Config& config, const policy::CompiledPolicy& policy) : config_(config), policy_(policy) {}

  void check(const policy::Reserve& limit, std::vector<Mistake>& out) const {
    const double wanted = limit.factor * policy_.at(limit.of).demand_high_tokens_per_s;
    const double carried = carries(limit, wanted);
    if (carried >= wanted * (1 - 1e-9)) return;
    const std::string where = limit.level ? fmt::format(" in {} {}", name_of(*limit.level), limit.place) : "";
    out.push_back(
        {{1, 1},
         fmt::format(
             "line {} of the policy wants {:.0f} tok/s for class '{}'; the engines that may serve it{} carry "
             "{:.0f} tok/s of it beside what other classes declare",
             limit.line, wanted, policy_.at(limit.of).name, where, carried),
         "add engines with its model there, lower the factor, or declare less demand"});
  }

 private:
  double tokens_per_s(const Engine& engine) const {
    const Profile& profile = config_.profile_of(engine);
    const double b = profile.b / engine.capacity_scale, a = profile.a / engine.capacity_scale;
    if (b <= 0) return infinite;
    const double batch = profile.max_batch > 0 ? profile.max_batch / (a + b * profile.max_batch) : infinite;
    return std::min(policy_.limits.load_ceiling / b, batch);
  }
  bool may_serve(ClassIndex c, const Engine& engine) const {
    const Cluster& home = *config_.find_cluster(engine.cluster);
    return std::ranges::binary_search(engine.models, policy_.at(policy_.at(c).model).name) &&
           policy_.allows(c, {engine.rack.str(), home.name.str(), home.region.str(), home.zone.str()});
  }
  bool lies_in(const Engine& engine, const policy::Reserve& limit) const {
    const Cluster& home = *config_.find_cluster(engine.cluster);
    if (!limit.level) return true;
    switch (*limit.level) {
      case policy::DomainLevel::rack: return engine.rack == limit.place;
      case policy::DomainLevel::cluster: return home.name.str() == limit.place.str();
      case policy::DomainLevel::region: return home.region == limit.place;
      default: return home.zone == limit.place;
    }
  }

  /// What of `wanted` finds room once all other classes' declared demand has found its own, as far as it does.
  double carries(const policy::Reserve& limit, double wanted) const {
    const std::size_t classes = policy_.classes.size(), engines = config_.engines.size();
    const std::size_t begin = classes + engines, end = begin + 1, own = end + 1;
    Network network(own + 1);
    for (std::size_t e = 0; e < engines; ++e) {
      const Engine& engine = config_.engines[e];
      network.add(classes + e, end, tokens_per_s(engine));
      for (std::size_t c = 0; c < classes; ++c)
        if (may_serve(ClassIndex(c), engine) && (ClassIndex(c) != limit.of || lies_in(engine, limit)))
          network.add(c, classes + e, infinite);
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const double declared = policy_.classes[c].demand_high_tokens_per_s;
      if (ClassIndex(c) != limit.of && declared < infinite) network.add(begin, c, declared);
    }
    network.push(begin, end);
    network.add(own, limit.of.at(), wanted);
    return network.push(own, end);
  }

  const Config& config_;
  const policy::CompiledPolicy& policy_;
};

}  // namespace

std::vector<Mistake> match_reserves(const Config& config, const policy::CompiledPolicy& policy) {
  std::vector<Mistake> out;
  for (const policy::Reserve& limit : policy.limits.reserves) Reserves(config, policy).check(limit, out);
  return out;
}

}  // namespace signalbox::config
