// Leadership as a lease in etcd: what to ask it next, and until when the own lease is good.
//
//   watching --nobody holds it--> granted --the counter is taken--> held --unsure, refused, resigned--> watching
//      ^------------- somebody else was faster, or etcd does not answer -------------|
//
// etcd holds two keys: the leader's, which lives by its lease, and a counter of terms, which outlives all leases. Both are
// written in one transaction that compares them, so that each leadership has a counter of its own, above all before it:
// routers, which follow the highest term, are fenced from a leader that does not know yet that its lease is gone.
//
// A lease is counted from the moment at which it was asked for, so that here it ends before it does in etcd; and it is given
// up a share earlier still, since clocks drift and what was decided just before the end is said a little later.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::global_optimizer {

/// One question to etcd. Every question is answered, if only by a failure.
struct AskEtcd {
  enum class Kind : std::uint8_t {
    look,      ///< who holds the leader's key, and what the counter is
    grant,     ///< a new lease
    campaign,  ///< take key and counter, unless somebody holds the key or has moved the counter
    renew,     ///< the lease
    release,   ///< the lease, and with it the key
  };
  Kind kind = Kind::look;
  std::uint64_t number = 0;
  std::int64_t lease = 0;             ///< all but look and grant
  Duration ttl{};                     ///< grant
  std::uint64_t counter = 0;          ///< campaign: the one to take
  std::int64_t counter_revision = 0;  ///< campaign: of the counter as it was seen; 0: there is none
  Duration patience{};                ///< no answer within this is a failure
  friend bool operator==(const AskEtcd&, const AskEtcd&) = default;
};

struct EtcdAnswer {
  std::uint64_t number = 0;
  std::string fault;  ///< why there is no answer; empty: there is one
  std::int64_t lease = 0;
  Duration ttl{};      ///< of the lease granted or renewed; zero: there is no such lease
  bool won = false;    ///< the campaign
  std::string holder;  ///< as it was seen, or found by a campaign that was lost; empty: nobody
  std::uint64_t counter = 0;
  std::int64_t counter_revision = 0;
};

struct TenureOptions {
  Duration lease = 2s;  ///< as asked for; etcd may grant a longer one
};

class Tenure {
 public:
  static constexpr int renewals = 4;      ///< within the time of a lease
  static constexpr int looks = 10;        ///< by a standby, within the time of a lease
  static constexpr int safety_share = 5;  ///< this part of a lease is not used

  enum class Turn : std::uint8_t { none, won, lost };

  explicit Tenure(TenureOptions options) : options_(options) {}

  /// What is to be asked now, if anything; the caller asks it at once. `next_counter` is above all terms heard of.
  std::optional<AskEtcd> ask(std::uint64_t next_counter, Instant now);
  /// Whether leadership was won by this answer, or lost.
  Turn hear(const EtcdAnswer& answer, Instant now);
  /// Whether the time is up; call it before anything is said as a leader.
  bool expired(Instant now) const { return held_ && now >= good_until_; }
  /// Gives the lease back, and does not stand for `rest`.
  void resign(Instant now, Duration rest);

  bool holds(Instant now) const { return held_ && now < good_until_; }
  /// Of the term won.
  std::uint64_t counter() const { return counter_; }
  /// For how long etcd has not answered; zero if its last answer was one.
  Duration silence(Instant now) const { return silent_since_ ? now - *silent_since_ : Duration::zero(); }
  const std::string& fault() const { return fault_; }
  /// When ask() may have something.
  Instant due() const;

 private:
  struct Open {
    AskEtcd ask;
    Instant since;
  };
  AskEtcd next(std::uint64_t next_counter) const;
  Turn settle(const AskEtcd& asked, Instant since, const EtcdAnswer& answer, Instant now);
  Turn fail(const AskEtcd& asked, Instant now);
  Turn lose(Instant now);
  void look_again(Instant now) { look_due_ = now + options_.lease / looks; }

  TenureOptions options_;
  std::uint64_t number_ = 0;
  std::optional<Open> open_;
  EtcdAnswer seen_;
  bool looked_ = false;  ///< what was seen is news
  std::optional<std::int64_t> lease_;
  bool held_ = false;  ///< by that lease the key is ours
  std::uint64_t counter_ = 0;
  Duration ttl_{};
  Instant good_until_ = never_yet, renew_due_ = end_of_time, look_due_ = never_yet, rest_until_ = never_yet;
  std::vector<std::int64_t> unwanted_;  ///< leases to give back
  std::optional<Instant> silent_since_;
  std::string fault_;
};

}  // namespace signalbox::global_optimizer
