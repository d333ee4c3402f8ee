#include "tools/fleet_view/view.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "cluster-config/policy/compile.hpp"

namespace signalbox::fleet_view {
namespace {

template <class T>
Heard<T> heard(const schema::Delivery& delivery, const T& message, Instant now) {
  return {message, delivery.envelope.source, now, delivery.age};
}

}  // namespace

void FleetView::on(const schema::Delivery& delivery, Instant now) {
  std::visit(
      [&](const auto& message) {
        using T = std::decay_t<decltype(message)>;
        auto latest = heard(delivery, message, now);
        const ProcessName& from = latest.from;
        if constexpr (std::is_same_v<T, schema::Beat>) {
          beats.insert_or_assign(message.id, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::EngineSignal>) {
          signals.insert_or_assign(message.engine, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::HealthVerdict>) {
          verdicts.insert_or_assign({message.engine, from}, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::FleetTable>) {
          tables.insert_or_assign(message.content, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::RoutingSnapshot>) {
          const auto known = snapshots.find(message.cluster);
          if (known == snapshots.end() || known->second.message.version <= message.version)
            snapshots.insert_or_assign(message.cluster, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::KeepAlive>) {
          keep_alives.insert_or_assign(from, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::SnapshotReceipt>) {
          receipts.insert_or_assign(from, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::DemandReport>) {
          demands.insert_or_assign(from, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::OutcomeReport>) {
          outcomes.insert_or_assign(from, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::Calibration>) {
          calibrations.insert_or_assign(from, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::CacheDigest>) {
          caches.insert_or_assign(message.engine, std::move(latest));
        } else if constexpr (std::is_same_v<T, schema::SentPrefixes>) {
          if (const schema::FleetTable* known = table(message.table))
            for (const schema::SentRow& row : message.rows)
              if (row.engine.at() < known->engines.size())
                ++sent_blocks[known->engines[row.engine.at()].name];
        } else if constexpr (std::is_same_v<T, schema::Alert>) {
          if (message.raised)
            alerts.insert_or_assign({message.name, from}, std::move(latest));
          else
            alerts.erase({message.name, from});
        } else if constexpr (std::is_same_v<T, schema::Policy>) {
          if (!policy || policy->message.hash != message.hash)
            compiled = policy::compile(message.text).policy;
          policy = std::move(latest);
        }
      },
      delivery.message);
}

const schema::FleetTable* FleetView::table(const Digest& content) const {
  const auto found = tables.find(content);
  return found == tables.end() ? nullptr : &found->second.message;
}

const schema::FleetTable* FleetView::newest_table() const {
  const Heard<schema::FleetTable>* newest = nullptr;
  for (const auto& [content, table] : tables)
    if (newest == nullptr || table.at - table.age_then > newest->at - newest->age_then) newest = &table;
  return newest == nullptr ? nullptr : &newest->message;
}

const Heard<schema::HealthVerdict>* FleetView::verdict(const EngineName& engine) const {
  const Heard<schema::HealthVerdict>* latest = nullptr;
  for (auto at = verdicts.lower_bound({engine, ProcessName()});
       at != verdicts.end() && at->first.first == engine; ++at)
    if (latest == nullptr || at->second.at - at->second.age_then > latest->at - latest->age_then)
      latest = &at->second;
  return latest;
}

const Heard<schema::Beat>* FleetView::leader() const {
  const Heard<schema::Beat>* leader = nullptr;
  for (const auto& [id, beat] : beats)
    if (beat.message.leads && (leader == nullptr || beat.message.term > leader->message.term)) leader = &beat;
  return leader;
}

std::string FleetView::engine_name(const Digest& content, EngineIndex row) const {
  const schema::FleetTable* known = table(content);
  if (known != nullptr && row.valid() && row.at() < known->engines.size())
    return known->engines[row.at()].name.str();
  return row.valid() ? fmt::format("#{}", row.value) : std::string();
}

std::string FleetView::class_name(const Digest& policy_hash, ClassIndex row) const {
  if (compiled && policy && policy->message.hash == policy_hash && row.valid() &&
      row.at() < compiled->classes.size())
    return compiled->classes[row.at()].name.str();
  return row.valid() ? fmt::format("#{}", row.value) : std::string();
}

RowNames FleetView::names() const {
  return {[this](const Digest& content, EngineIndex row) { return engine_name(content, row); },
          [this](const Digest& hash, ClassIndex row) { return class_name(hash, row); }};
}

}  // namespace signalbox::fleet_view
