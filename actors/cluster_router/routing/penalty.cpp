#include "actors/cluster_router/routing/penalty.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::routing {

void Penalties::remap(const std::vector<EngineIndex>& from) {
  std::vector<std::uint8_t> clean(from.size(), 1);
  std::vector<Record> records(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].valid()) continue;
    clean[i] = clean_[from[i].at()];
    records[i] = records_[from[i].at()];
  }
  clean_ = std::move(clean);
  records_ = std::move(records);
}

bool Penalties::incarnation(EngineIndex engine, const Incarnation& life) {
  Record& record = records_[engine.at()];
  if (record.known && record.life == life) return false;
  const bool first_word = !record.known;
  record.known = true;
  record.life = life;
  if (first_word) return false;  // what was seen before the first word on its life was seen of this life
  record.shares.clear();
  record.alone_until = never_yet;
  clean_[engine.at()] = 1;
  return true;
}

double Penalties::decayed(const Share& share, Instant now) const {
  const double age = std::max(0.0, to_seconds(now - share.at));
  return share.log * std::exp2(-age / to_seconds(numbers_.half_life));
}

void Penalties::failure(EngineIndex engine, policy::FailureKind kind, Instant now) {
  Record& record = records_[engine.at()];
  clean_[engine.at()] = 0;
  if (record.shares.empty() || record.shares[record.shares.size() - 1].batch != not_carried) {
    if (record.shares.full()) {
      // The two oldest become one that ends when both are covered.
      record.shares[1] = {record.shares[1].batch,
                          decayed(record.shares[0], now) + decayed(record.shares[1], now), now};
      drop_front(engine, 1);
    }
    record.shares.push({not_carried, 0.0, now});
  }
  Share& open = record.shares[record.shares.size() - 1];
  open.log = decayed(open, now) + std::log(numbers_.of(kind));
  open.at = now;
}

void Penalties::retry_after(EngineIndex engine, Duration wait, Instant now) {
  if (wait <= Duration::zero()) return;
  Record& record = records_[engine.at()];
  record.alone_until = std::max(record.alone_until, now + std::min(wait, numbers_.retry_after_cap));
  clean_[engine.at()] = 0;
}

void Penalties::carried_by(std::uint64_t batch, Instant now) {
  constexpr double nothing = 0.01;  // one percent of weight
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (clean_[i]) continue;
    Record& record = records_[i];
    if (!record.shares.empty()) {
      Share& newest = record.shares[record.shares.size() - 1];
      if (newest.batch == not_carried) newest.batch = batch;
    }
    std::size_t faded = 0;
    while (faded < record.shares.size() && -decayed(record.shares[faded], now) < nothing) ++faded;
    drop_front(EngineIndex(i), faded);
    if (record.alone_until <= now) record.alone_until = never_yet;
    settle(EngineIndex(i));
  }
}

void Penalties::covered(std::uint64_t batch) {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (clean_[i]) continue;
    const auto& shares = records_[i].shares;
    std::size_t ended = 0;
    while (ended < shares.size() && shares[ended].batch <= batch && shares[ended].batch != not_carried)
      ++ended;
    drop_front(EngineIndex(i), ended);
    settle(EngineIndex(i));
  }
}

void Penalties::settle(EngineIndex engine) {
  const Record& record = records_[engine.at()];
  if (record.shares.empty() && record.alone_until == never_yet) clean_[engine.at()] = 1;
}

void Penalties::drop_front(EngineIndex engine, std::size_t count) {
  auto& shares = records_[engine.at()].shares;
  for (std::size_t i = count; i < shares.size(); ++i) shares[i - count] = shares[i];
  for (std::size_t i = 0; i < count; ++i) shares.pop();
}

double Penalties::penalised(EngineIndex engine, Instant now) const {
  const Record& record = records_[engine.at()];
  if (now < record.alone_until) return numbers_.floor;
  double log = 0;
  for (const Share& share : record.shares) log += decayed(share, now);
  return log == 0 ? 1.0 : std::max(numbers_.floor, std::exp(log));
}

}  // namespace signalbox::routing
