#include "actors/cluster_router/routing/waiting_room.hpp"

#include <algorithm>
#include <tuple>

namespace signalbox::routing {

namespace {

/// Tenants whose usage differs by less than this share of the mean count as served alike: their deadlines decide.
constexpr double alike = 0.1;

using Flow = WaitingRoom::Flow;

auto order_of(const Flow& f) { return std::tuple(f.request_class, f.criticality, f.alone, f.tenant); }
bool in_order(const Flow& a, const Flow& b) { return order_of(a) < order_of(b); }

/// Flows that compete as tenants of one class. One that is alone competes with no other.
bool same_rank(const Flow& a, const Flow& b) {
  return a.request_class == b.request_class && a.criticality == b.criticality && !a.alone && !b.alone;
}

/// Of flows of one rank: the first of those whose tenants were served least.
const Waiting& candidate_of(std::span<const Flow> flows, const TenantShares& shares) {
  if (flows.size() == 1) return flows.front().line.front();
  const auto used = [&](const Flow& f) { return shares.used(f.request_class, f.tenant); };
  double least = used(flows.front()), sum = 0;
  for (const Flow& flow : flows) {
    const double u = used(flow);
    least = std::min(least, u);
    sum += u;
  }
  const double bound = least + alike * sum / static_cast<double>(flows.size());
  const Waiting* best = nullptr;
  for (const Flow& flow : flows)
    if (used(flow) <= bound && (best == nullptr || flow.line.front().until < best->until))
      best = &flow.line.front();
  return *best;
}

}  // namespace

Flow& WaitingRoom::flow_of(const Waiting& newcomer) {
  Flow flow{newcomer.request_class, newcomer.criticality, newcomer.tenant, newcomer.alone, {}};
  const auto place = std::lower_bound(flows_.begin(), flows_.end(), flow, in_order);
  if (place != flows_.end() && same_rank(*place, flow) && place->tenant == flow.tenant) return *place;
  return *flows_.insert(place, std::move(flow));
}

Flow* WaitingRoom::least_of(ClassIndex request_class) {
  Flow* least = nullptr;
  const auto rank = [](const Flow& f) {
    return std::tuple(f.criticality, -static_cast<double>(f.line.size()));
  };
  for (Flow& flow : flows_)
    if (flow.request_class == request_class && (least == nullptr || rank(flow) < rank(*least))) least = &flow;
  return least;
}

std::optional<Waiting> WaitingRoom::add(const Waiting& newcomer, std::size_t depth) {
  std::size_t of_class = 0, of_tenant = 0;
  for (const Flow& flow : flows_) {
    if (flow.request_class != newcomer.request_class) continue;
    of_class += flow.line.size();
    if (flow.tenant == newcomer.tenant) of_tenant += flow.line.size();
  }
  std::optional<Waiting> given_up;
  if (of_class >= depth) {
    Flow* least = least_of(newcomer.request_class);
    if (least == nullptr || least->criticality > newcomer.criticality) return newcomer;
    if (least->criticality == newcomer.criticality && least->line.size() < of_tenant + 2) return newcomer;
    given_up = take_last(*least);
  }
  auto& line = flow_of(newcomer).line;
  const auto place = std::upper_bound(line.begin(), line.end(), newcomer,
                                      [](const Waiting& a, const Waiting& b) { return a.until < b.until; });
  line.insert(place, newcomer);
  ++size_;
  return given_up;
}

Waiting WaitingRoom::take_last(Flow& flow) {
  const Waiting last = flow.line.back();
  flow.line.pop_back();
  --size_;
  drop_if_empty(flow);
  return last;
}

void WaitingRoom::drop_if_empty(Flow& flow) {
  if (!flow.line.empty()) return;
  flows_.erase(flows_.begin() + (&flow - flows_.data()));
}

void WaitingRoom::remove(Ticket ticket) {
  for (Flow& flow : flows_) {
    const auto found = std::find_if(flow.line.begin(), flow.line.end(),
                                    [&](const Waiting& w) { return w.ticket == ticket; });
    if (found == flow.line.end()) continue;
    flow.line.erase(found);
    --size_;
    return drop_if_empty(flow);
  }
}

std::optional<Waiting> WaitingRoom::expired(Instant now) const {
  const Waiting* first = nullptr;
  for (const Flow& flow : flows_)
    if (first == nullptr || flow.line.front().until < first->until) first = &flow.line.front();
  if (first == nullptr || first->until > now) return std::nullopt;
  return *first;
}

Instant WaitingRoom::earliest() const {
  Instant least = end_of_time;
  for (const Flow& flow : flows_) least = std::min(least, flow.line.front().until);
  return least;
}

std::span<const Waiting> WaitingRoom::next(const TenantShares& shares, const FloorCredits& floors) {
  next_.clear();
  for (std::size_t first = 0, end = 0; first < flows_.size(); first = end) {
    for (end = first + 1; end < flows_.size() && same_rank(flows_[first], flows_[end]);) ++end;
    next_.push_back(candidate_of(std::span(flows_).subspan(first, end - first), shares));
  }
  const auto rank = [&](const Waiting& w) {
    return std::tuple(!floors.owes(w.request_class),
                      criticality_count - static_cast<std::size_t>(w.criticality), w.until, w.ticket.slot);
  };
  std::sort(next_.begin(), next_.end(),
            [&](const Waiting& a, const Waiting& b) { return rank(a) < rank(b); });
  return next_;
}

std::vector<Waiting> WaitingRoom::remap(const std::vector<ClassIndex>& to) {
  std::vector<Flow> kept;
  std::vector<Waiting> homeless;
  for (Flow& flow : flows_) {
    flow.request_class = to[flow.request_class.at()];
    for (Waiting& w : flow.line) w.request_class = flow.request_class;
    if (flow.request_class.valid())
      kept.push_back(std::move(flow));
    else
      homeless.insert(homeless.end(), flow.line.begin(), flow.line.end());
  }
  size_ -= homeless.size();
  std::stable_sort(kept.begin(), kept.end(), in_order);
  flows_ = std::move(kept);
  return homeless;
}

}  // namespace signalbox::routing
