#include "actors/kit/fleet/verdicts.hpp"

#include <tuple>

namespace signalbox::kit {

int badness(HealthState state) {
  switch (state) {
    case HealthState::ready: return 0;
    case HealthState::degraded: return 1;
    case HealthState::starting: return 2;
    case HealthState::draining: return 3;
    case HealthState::suspect: return 4;
    case HealthState::gone: return 5;
  }
  return 5;
}

bool may_serve(HealthState state) {
  return state == HealthState::ready || state == HealthState::degraded || state == HealthState::starting;
}

bool VerdictBook::hear(const schema::HealthVerdict& verdict, const ProcessName& monitor, Duration age,
                       Instant now) {
  Entry& entry = entries_[verdict.engine][monitor];
  const bool changed = entry.verdict.engine.empty() || entry.verdict.state != verdict.state ||
                       entry.verdict.capacity_factor != verdict.capacity_factor ||
                       entry.verdict.isolated != verdict.isolated ||
                       entry.verdict.incarnation != verdict.incarnation;
  const Instant since = !is_accused(verdict.state)        ? end_of_time
                        : is_accused(entry.verdict.state) ? entry.accused_since
                                                          : now;
  entry = {verdict, now - age, since};
  return changed;
}

const schema::HealthVerdict* VerdictBook::of(const EngineName& engine, Instant now) const {
  const Entry* entry = entry_of(engine, now);
  return entry ? &entry->verdict : nullptr;
}

Instant VerdictBook::accused_since(const EngineName& engine, Instant now) const {
  const Entry* entry = entry_of(engine, now);
  return entry ? entry->accused_since : end_of_time;
}

const VerdictBook::Entry* VerdictBook::entry_of(const EngineName& engine, Instant now) const {
  const auto found = entries_.find(engine);
  if (found == entries_.end()) return nullptr;
  const auto rank = [now](const Entry& entry) {
    const schema::HealthVerdict& v = entry.verdict;
    const bool drained = v.state == HealthState::draining && !v.isolated;
    return std::tuple(now - entry.said > fresh, !drained, v.isolated, badness(v.state), -v.capacity_factor);
  };
  const Entry* best = nullptr;
  for (const auto& [monitor, entry] : found->second)
    if (now - entry.said <= lifetime && (!best || rank(entry) < rank(*best))) best = &entry;
  return best;
}

void VerdictBook::forget_old(Instant now) {
  for (auto& [engine, said] : entries_)
    std::erase_if(said, [&](const auto& item) { return now - item.second.said > lifetime; });
  std::erase_if(entries_, [](const auto& item) { return item.second.empty(); });
}

}  // namespace signalbox::kit
