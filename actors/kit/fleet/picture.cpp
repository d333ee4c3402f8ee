#include "actors/kit/fleet/picture.hpp"

namespace signalbox::kit {

namespace {
constexpr Duration cover_lifetime = 60s;
}

bool Picture::hear(const schema::Delivery& delivery, Instant now) {
  const schema::Envelope& from = delivery.envelope;
  if (const auto* signal = std::get_if<schema::EngineSignal>(&delivery.message)) {
    Engine& engine = engines_[signal->engine];
    engine.signal = *signal;
    engine.heard_at = now - delivery.age;
  } else if (const auto* profile = std::get_if<schema::EngineProfile>(&delivery.message)) {
    engines_[profile->engine].profile = *profile;
  } else if (const auto* farewell = std::get_if<schema::EngineFarewell>(&delivery.message)) {
    engines_.erase(farewell->engine);
  } else if (const auto* verdict = std::get_if<schema::HealthVerdict>(&delivery.message)) {
    return verdicts_.hear(*verdict, from.source, delivery.age, now);
  } else if (const auto* report = std::get_if<schema::OutcomeReport>(&delivery.message)) {
    covers_[from.source] = {{from.source, from.incarnation, report->number}, now};
  }
  return false;
}

Picture::EngineNow Picture::of(const EngineName& name, Instant now) const {
  EngineNow out;
  out.verdict = verdicts_.of(name, now);
  out.accused_since = verdicts_.accused_since(name, now);
  const auto found = engines_.find(name);
  if (found == engines_.end()) return out;
  out.heard_at = found->second.heard_at;
  if (found->second.signal) out.signal = &*found->second.signal;
  if (found->second.profile) out.profile = &*found->second.profile;
  return out;
}

double Picture::coverage(const schema::FleetTable& table, Duration fresh, Instant now) const {
  if (table.engines.empty()) return 0;
  std::size_t heard = 0;
  for (const auto& row : table.engines) {
    const auto found = engines_.find(row.name);
    if (found != engines_.end() && found->second.signal && now - found->second.heard_at <= fresh) ++heard;
  }
  return static_cast<double>(heard) / static_cast<double>(table.engines.size());
}

std::vector<schema::CoverRow> Picture::covers() const {
  std::vector<schema::CoverRow> out;
  for (const auto& [router, cover] : covers_) out.push_back(cover.row);
  return out;
}

void Picture::forget_old(Instant now) {
  verdicts_.forget_old(now);
  std::erase_if(covers_, [&](const auto& c) { return now - c.second.heard_at > cover_lifetime; });
}

}  // namespace signalbox::kit
