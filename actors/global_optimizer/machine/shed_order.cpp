#include "actors/global_optimizer/machine/shed_order.hpp"

#include <algorithm>

namespace signalbox::global_optimizer {

namespace {

/// Each bid is above the one below it by this factor: the solver's prices are right to a thousandth.
constexpr double lead = 1.05;
/// The greatest cost; what asks for more than this differs from its rivals beyond any real fleet.
constexpr double most_s = 1e11;

class Auction {
 public:
  explicit Auction(optimizer::Problem& problem) : problem_(problem), bid_(problem.engines.size(), 0.0) {}

  /// The least cost of refusing that outbids, on each of the source's engines, all that was offered so far.
  double cost_to_outbid(const optimizer::Source& source, double at_least_s) const {
    double cost = at_least_s;
    for (const optimizer::Pair& pair : problem_.pairs_of(source))
      cost = std::max(cost, pair.cost_s + pair.work_s * lead * bid_[pair.engine.at()]);
    return std::min(cost, std::max(at_least_s, most_s));
  }

  /// What the source pays for a second of its engines' time before it is refused. Staying where the last plan had it is worth the cost
  /// of moving too.
  void offer(const optimizer::Source& source) {
    if (source.demand_per_s <= 0.0) return;
    for (const optimizer::Pair& pair : problem_.pairs_of(source)) {
      double& bid = bid_[pair.engine.at()];
      bid = std::max(bid, (source.shed_cost_s + problem_.churn_cost_s - pair.cost_s) / pair.work_s);
    }
  }

  /// Floors outbid what the last of an engine's capacity costs in latency, too: no engine has room while a floor is broken.
  void offer_capacity() {
    for (std::size_t e = 0; e < bid_.size(); ++e) {
      const optimizer::CongestionCurve& curve = problem_.engines[e].curve;
      if (curve.ceiling > 0.0) bid_[e] = std::max(bid_[e], curve.marginal(curve.ceiling));
    }
  }

 private:
  optimizer::Problem& problem_;
  std::vector<double> bid_;  ///< by EngineIndex
};

}  // namespace

std::size_t shed_turn(const policy::CompiledPolicy& policy, ClassIndex c) {
  const auto& order = policy.shed.order;
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), policy.at(c).criticality) -
                                  order.begin());
}

void keep_shed_order(const policy::CompiledPolicy& policy, optimizer::Problem& problem) {
  Auction auction(problem);
  for (std::size_t turn = 0; turn <= policy.shed.order.size(); ++turn) {
    std::vector<optimizer::Source*> peers;
    for (optimizer::Source& source : problem.sources)
      if (shed_turn(policy, source.service_class) == turn) peers.push_back(&source);
    for (optimizer::Source* source : peers)
      source->shed_cost_s = auction.cost_to_outbid(*source, source->shed_cost_s);
    for (const optimizer::Source* source : peers) auction.offer(*source);
  }
  auction.offer_capacity();
  for (optimizer::Source& source : problem.sources)
    source.floor_shed_cost_s =
        auction.cost_to_outbid(source, std::max(source.floor_shed_cost_s, source.shed_cost_s));
}

}  // namespace signalbox::global_optimizer
