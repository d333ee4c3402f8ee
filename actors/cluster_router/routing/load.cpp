#include "actors/cluster_router/routing/load.hpp"

namespace signalbox::routing {

void LoadTable::remap(const std::vector<EngineIndex>& from,
                      const std::vector<std::atomic<std::int64_t>*>& all) {
  std::vector<Entry> entries(from.size());
  std::vector<History> histories(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].valid()) continue;
    entries[i] = entries_[from[i].at()];
    histories[i] = histories_[from[i].at()];
    entries_[from[i].at()].all = nullptr;
  }
  // What remains has no row any more, and its holds are dropped.
  for (Entry& gone : entries_)
    if (gone.all != nullptr) gone.all->fetch_sub(gone.own.requests);
  for (std::size_t i = 0; i < all.size(); ++i) entries[i].all = all[i];
  entries_ = std::move(entries);
  histories_ = std::move(histories);
}

bool LoadTable::reserve(EngineIndex engine, std::uint32_t cap) {
  std::atomic<std::int64_t>* all = entries_[engine.at()].all;
  if (all == nullptr) return true;
  std::int64_t there = all->load();
  while (there < static_cast<std::int64_t>(cap))
    if (all->compare_exchange_weak(there, there + 1)) return true;
  return false;
}

void LoadTable::give_back(EngineIndex engine) {
  if (std::atomic<std::int64_t>* all = entries_[engine.at()].all) all->fetch_sub(1);
}

Hold LoadTable::take(EngineIndex engine, Charge charge, Instant now) {
  remember(engine, now);
  OwnLoad& own = entries_[engine.at()].own;
  own.requests += 1;
  own.prefill_tokens += charge.prefill;
  own.kv_tokens += charge.kv;
  Hold hold;
  hold.engine_ = engine;
  hold.charge_ = charge;
  return hold;
}

void LoadTable::prefilled(Hold& hold, Instant now) {
  if (!hold.held()) return;
  remember(hold.engine_, now);
  entries_[hold.engine_.at()].own.prefill_tokens -= hold.charge_.prefill;
  hold.charge_.prefill = 0;
}

void LoadTable::release(Hold& hold, Instant now) {
  if (!hold.held()) return;
  remember(hold.engine_, now);
  OwnLoad& own = entries_[hold.engine_.at()].own;
  own.requests -= 1;
  own.prefill_tokens -= hold.charge_.prefill;
  own.kv_tokens -= hold.charge_.kv;
  assert(own.requests >= 0 && own.prefill_tokens >= 0 && own.kv_tokens >= 0);
  give_back(hold.engine_);
  hold.engine_ = EngineIndex{};
}

void LoadTable::sent_elsewhere(EngineIndex engine, std::int64_t tokens, double token_s, Instant now) {
  Entry& entry = entries_[engine.at()];
  Instant& last = histories_[engine.at()].elsewhere_at;
  const double theirs = static_cast<double>(entry.waiting_elsewhere + tokens);
  const double all = theirs + static_cast<double>(entry.own.prefill_tokens);
  const double computed = last == never_yet || token_s <= 0 ? 0 : to_seconds(now - last) / token_s;
  last = now;
  const double left = all > 0 ? theirs * std::max(0.0, 1 - computed / all) : 0;
  entry.waiting_elsewhere = static_cast<std::int32_t>(std::min(left, 1e9));
}

void LoadTable::remember(EngineIndex engine, Instant now) {
  History& history = histories_[engine.at()];
  const Past& last = history.past[(history.next + kept - 1) % kept];
  if (last.until != never_yet && now - last.until < spacing) return;
  history.past[history.next] = {now, entries_[engine.at()].own};
  history.next = (history.next + 1) % kept;
}

void LoadTable::reading(EngineIndex engine, Instant described_at) {
  History& history = histories_[engine.at()];
  if (described_at == history.described_at) return;
  history.described_at = described_at;
  // Oldest first: the first load that lasted past the moment. None did: nothing has changed since.
  Entry& entry = entries_[engine.at()];
  entry.at_reading = entry.own;
  for (std::size_t i = 0; i < kept; ++i) {
    const Past& past = history.past[(history.next + i) % kept];
    if (past.until == never_yet || past.until < described_at) continue;
    entry.at_reading = past.load;
    return;
  }
}

}  // namespace signalbox::routing
