#include "tools/console/model/history.hpp"

#include <algorithm>

#include "tools/fleet_view/status.hpp"

namespace signalbox::console {
namespace {

DecisionBrief brief_of(const schema::DecisionRecord& record, std::uint64_t number) {
  DecisionBrief out;
  out.number = number;
  out.decision = record.decision, out.cluster = record.cluster.str();
  out.class_name = record.class_name, out.engine = record.engine_name.str();
  out.refused = record.refused != schema::RefuseReason::none;
  if (out.refused)
    out.outcome = name_of(record.refused);
  else
    out.outcome = record.attempts.empty() ? "open" : name_of(record.attempts.back().end);
  out.attempts = record.attempts.size();
  out.took_s = to_seconds(record.took);
  return out;
}

Sample sample_of(const fleet_view::FleetView& view, Instant now) {
  Sample out;
  const fleet_view::FleetStatus fleet = fleet_status(view, now);
  out.at = now;
  out.offered_rps = fleet.offered_rps, out.shed_rps = fleet.shed_rps;
  out.latency_s = fleet.latency_s, out.first_byte_s = fleet.first_byte_s;
  out.gap = fleet.gap;
  const auto engines = engine_statuses(view, now);
  const schema::FleetTable* table = view.newest_table();
  const bool by_cluster = History::by_cluster(view);
  out.shares.resize(by_cluster && table != nullptr ? table->clusters.size() : engines.size());
  double load = 0, capacity = 0;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    load += engines[i].planned_load.value_or(0), capacity += engines[i].capacity.value_or(0);
    const std::size_t at = by_cluster ? table->engines[i].cluster.at() : i;
    if (at < out.shares.size()) out.shares[at] += engines[i].planned_share;
  }
  if (capacity > 0) out.use = load / capacity;
  return out;
}

}  // namespace

void History::on(const schema::Delivery& delivery, const fleet_view::FleetView& view, Instant now) {
  if (const auto* record = std::get_if<schema::DecisionRecord>(&delivery.message)) {
    decisions_.push_back(brief_of(*record, ++heard_));
    records_.push_back(*record);
    if (decisions_.size() > most_decisions) decisions_.pop_front(), records_.pop_front();
  }
  if (next_ != never_yet && now < next_) return;
  next_ = now + spacing;
  if (view.newest_table() == nullptr) return;
  samples_.push_back(sample_of(view, now));
  if (samples_.size() > most_samples) samples_.pop_front();
}

const schema::DecisionRecord* History::find(const std::string& decision) const {
  const auto found =
      std::find_if(records_.rbegin(), records_.rend(), [&](const auto& r) { return r.decision == decision; });
  return found == records_.rend() ? nullptr : &*found;
}

bool History::by_cluster(const fleet_view::FleetView& view) {
  const schema::FleetTable* table = view.newest_table();
  return table != nullptr && table->engines.size() > most_engines;
}

std::vector<std::string> History::labels(const fleet_view::FleetView& view) const {
  std::vector<std::string> out;
  const schema::FleetTable* table = view.newest_table();
  if (table == nullptr) return out;
  if (by_cluster(view))
    for (const auto& cluster : table->clusters) out.push_back(cluster.name.str());
  else
    for (const auto& engine : table->engines) out.push_back(engine.name.str());
  return out;
}

}  // namespace signalbox::console
