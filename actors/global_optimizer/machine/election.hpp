// Who leads: the embedded election of design section 8.
//
//   standby --no leader heard for T, or it says that it leads no more--> candidate --own term is durable--> leader
//      ^--------------------- a higher term was heard, or it resigned -----------------------------------------|
//
// Leadership is sticky: a candidate stands only when no leader was heard. Of several candidates that have listened for T
// the lowest id stands first, the next one T later. While it waits a candidate learns the highest term from beats,
// receipts and snapshots.
#pragma once

#include <map>
#include <string>

#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::global_optimizer {

struct ElectionOptions {
  ProcessName id;
  std::uint64_t epoch = 1;         ///< from 1
  std::uint64_t kept_counter = 0;  ///< the highest own term that was persisted
  Duration timeout = 1s;           ///< T
  Duration period = 1s;            ///< of plans; three without one and the leader counts as silent
};

class Election {
 public:
  Election(ElectionOptions options, Instant now);

  /// True if it made a leader step down.
  bool hear(const schema::Delivery& delivery, Instant now);
  /// Whether the time has come to stand; then call stand().
  bool should_stand(Instant now) const;
  /// Takes the next term; the caller makes it durable before anything is said.
  Term stand(Instant now) { return take(next_counter(), now); }
  /// Leads in a term of this counter, which nobody else has.
  Term take(std::uint64_t counter, Instant now);
  /// Above all terms that were heard of.
  std::uint64_t next_counter() const;
  /// Gives leadership up and does not stand for `rest`.
  void resign(Instant now, Duration rest);

  bool leads() const { return leads_; }
  /// The own term while leading, else the highest one heard.
  const Term& term() const { return term_; }
  /// Somebody else was seen to lead since then.
  bool heard_leader_since(Instant then) const { return heard_at_ > then; }
  /// A standby that could take over was heard lately.
  bool has_standby(Instant now) const;
  /// When should_stand() may turn true.
  Instant due(Instant now) const;

 private:
  bool observe(const Term& term);
  bool hear_beat(const schema::Beat& beat, Instant sent, Instant now);
  void heard_leader(Instant now) { heard_at_ = now; }
  std::size_t rank(Instant now) const;

  ElectionOptions options_;
  bool leads_ = false;
  Term term_;               ///< the highest that is believed
  SnapshotVersion newest_;  ///< the highest version heard
  Instant heard_at_;        ///< the leader, last
  Instant progress_at_;     ///< the leader's last new sequence
  Instant rest_until_ = never_yet;
  struct Peer {
    Instant heard_at;
    Instant started;  ///< by its own word
  };
  std::map<ProcessName, Peer> peers_;  ///< other optimizers that beat
};

}  // namespace signalbox::global_optimizer
