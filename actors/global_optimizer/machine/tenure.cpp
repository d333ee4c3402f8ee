#include "actors/global_optimizer/machine/tenure.hpp"

#include <algorithm>

namespace signalbox::global_optimizer {

namespace {
/// Leases that were not given back end by themselves.
constexpr std::size_t most_unwanted = 8;
}  // namespace

Instant Tenure::due() const {
  if (open_) return held_ ? good_until_ : end_of_time;
  if (!unwanted_.empty()) return never_yet;
  if (held_) return std::min(renew_due_, good_until_);
  if (lease_) return never_yet;
  return std::max(look_due_, rest_until_);
}

std::optional<AskEtcd> Tenure::ask(std::uint64_t next_counter, Instant now) {
  if (open_ || now < due()) return std::nullopt;
  AskEtcd out = next(next_counter);
  out.number = ++number_;
  out.patience = options_.lease / renewals;
  open_ = Open{out, now};
  return out;
}

AskEtcd Tenure::next(std::uint64_t next_counter) const {
  using Kind = AskEtcd::Kind;
  AskEtcd out;
  if (!unwanted_.empty()) {
    out.kind = Kind::release, out.lease = unwanted_.back();
  } else if (held_) {
    out.kind = Kind::renew, out.lease = *lease_;
  } else if (lease_) {
    out.kind = Kind::campaign, out.lease = *lease_;
    out.counter = std::max(next_counter, seen_.counter + 1);
    out.counter_revision = seen_.counter_revision;
  } else if (looked_ && seen_.holder.empty()) {
    out.kind = Kind::grant, out.ttl = options_.lease;
  }
  return out;
}

Tenure::Turn Tenure::hear(const EtcdAnswer& answer, Instant now) {
  if (!open_ || open_->ask.number != answer.number) return Turn::none;
  const Open open = *std::exchange(open_, std::nullopt);
  fault_ = answer.fault;
  if (answer.fault.empty()) {
    silent_since_.reset();
    return settle(open.ask, open.since, answer, now);
  }
  if (!silent_since_) silent_since_ = open.since;
  return fail(open.ask, now);
}

Tenure::Turn Tenure::settle(const AskEtcd& asked, Instant since, const EtcdAnswer& answer, Instant now) {
  const auto extend = [&](Duration ttl) {
    ttl_ = ttl;
    good_until_ = since + ttl - ttl / safety_share;
    renew_due_ = since + ttl / renewals;
  };
  switch (asked.kind) {
    case AskEtcd::Kind::look:
      seen_ = answer, looked_ = true;
      if (!seen_.holder.empty()) look_again(now);
      return Turn::none;
    case AskEtcd::Kind::grant:
      looked_ = false;
      if (answer.ttl <= Duration::zero()) return look_again(now), Turn::none;
      lease_ = answer.lease;
      extend(answer.ttl);
      return now < rest_until_ ? lose(now) : Turn::none;
    case AskEtcd::Kind::campaign:
      if (lease_ != asked.lease) return Turn::none;  // resigned meanwhile: the lease is given back next
      if (!answer.won) {
        seen_ = answer;
        return lose(now);
      }
      held_ = true, counter_ = asked.counter;
      return now < good_until_ ? Turn::won : lose(now);
    case AskEtcd::Kind::renew:
      if (!held_ || lease_ != asked.lease) return Turn::none;
      if (answer.ttl <= Duration::zero()) return lose(now);
      extend(answer.ttl);
      return now < good_until_ ? Turn::none : lose(now);
    case AskEtcd::Kind::release: std::erase(unwanted_, asked.lease); return Turn::none;
  }
  return Turn::none;
}

/// What was asked may have been done all the same: a lease by which the key may be held is given back.
Tenure::Turn Tenure::fail(const AskEtcd& asked, Instant now) {
  look_again(now);
  looked_ = false;
  if (asked.kind == AskEtcd::Kind::release) std::erase(unwanted_, asked.lease);
  if (asked.kind == AskEtcd::Kind::campaign) return lose(now);
  if (!held_) return Turn::none;
  renew_due_ = now + ttl_ / (2 * renewals);
  return now < good_until_ ? Turn::none : lose(now);
}

Tenure::Turn Tenure::lose(Instant now) {
  const bool led = held_;
  if (lease_ && unwanted_.size() < most_unwanted) unwanted_.push_back(*lease_);
  lease_.reset();
  held_ = false, looked_ = false;
  look_again(now);
  return led ? Turn::lost : Turn::none;
}

void Tenure::resign(Instant now, Duration rest) {
  lose(now);
  rest_until_ = now + rest;
}

}  // namespace signalbox::global_optimizer
