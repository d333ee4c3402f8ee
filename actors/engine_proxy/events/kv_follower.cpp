#include "actors/engine_proxy/events/kv_follower.hpp"

#include <utility>

namespace signalbox::engine_proxy {

using schema::CacheKnowledge;

std::optional<std::uint64_t> KvFollower::take_question(Instant now) {
  if (!started_ && can_ask_ && !asking_) ask(0);
  if (!question_) return std::nullopt;
  heard_ = now;
  return std::exchange(question_, std::nullopt);
}

void KvFollower::ask(std::uint64_t from) {
  asking_ = true;
  answered_ = false;
  question_ = asked_ = from;
}

void KvFollower::connected() {
  if (can_ask_ && !asking_) ask_for_rest();
}

/// From the last one that is here on: that it comes with the same content says that it is the same life.
void KvFollower::ask_for_rest() { ask(joined_ && next_ > 0 ? next_ - 1 : 0); }

/// The cache of a new life is empty, and its numbers begin with 0.
void KvFollower::begin_anew() {
  ++state_.clears;
  next_ = 0;
  joined_ = true;
  live_last_.reset();
  stored_ = removed_ = 0;
  whole_ = true;
  waiting_.clear();
}

void KvFollower::lose(std::uint64_t batches) {
  state_.missed += batches;
  whole_ = false;
}

void KvFollower::live(std::uint64_t number, const std::optional<KvCounts>& counts, Instant now) {
  const bool covered = joined_ && number < next_;
  // What is still on its way when a replay ends was part of it.
  const bool late = covered && (live_last_ ? number > *live_last_ : now - replay_over_ < patience);
  const bool again = live_last_ ? number <= *live_last_ : covered && !late && !asking_;
  if (again) {
    begin_anew();
    if (can_ask_ && number > 0) ask(0);
  }
  live_last_ = number;
  if (asking_) {
    if (waiting_.size() >= most_waiting) {
      lose(1);
      waiting_.erase(waiting_.begin());
    }
    waiting_.insert_or_assign(number, counts);
    return;
  }
  if (late && !again) return;
  if (joined_ && number > next_ && can_ask_) {
    waiting_.insert_or_assign(number, counts);
    return ask_for_rest();
  }
  take(number, counts);
}

void KvFollower::replayed(std::uint64_t number, const std::optional<KvCounts>& counts, Instant now) {
  if (!asking_ || question_) return;  // of a replay that was given up
  heard_ = now;
  answered_ = true;
  if (joined_ && number + 1 == next_ && counts && counts->fingerprint != last_) {
    begin_anew();
    return ask(0);
  }
  if (joined_ && number < next_) return;
  if (!joined_) state_.missed += number;  // the engine keeps the latest ones only
  take(number, counts);
  ++state_.replayed;
}

void KvFollower::replay_ended(Instant now) {
  if (!asking_ || question_) return;
  if (joined_ && asked_ + 1 == next_ && !answered_) {  // it does not have what it said last: it never said it
    begin_anew();
    return ask(0);
  }
  go_on(now);
}

/// With what there is.
void KvFollower::go_on(Instant now) {
  asking_ = false;
  started_ = true;
  replay_over_ = now;
  for (const auto& [number, counts] : std::exchange(waiting_, {})) {
    if (!joined_ || number >= next_) take(number, counts);
  }
}

void KvFollower::on_wake(Instant now) {
  if (asking_ && !question_ && now >= heard_ + patience) go_on(now);
}

void KvFollower::take(std::uint64_t number, const std::optional<KvCounts>& counts) {
  if (!joined_)
    whole_ = number == 0;  // else what came before is not known
  else if (number > next_)
    lose(number - next_);
  joined_ = true;
  next_ = number + 1;
  last_ = counts ? counts->fingerprint : 0;
  ++state_.batches;
  if (!counts) {
    ++state_.unreadable;
    whole_ = false;
  } else {
    state_.stored += counts->stored;
    state_.removed += counts->removed;
    state_.clears += counts->clears;
    state_.events_skipped += counts->skipped;
    if (counts->block_tokens > 0) state_.block_tokens = counts->block_tokens;
    if (counts->clears > 0) stored_ = removed_ = 0, whole_ = true;
    stored_ += counts->stored_since_clear;
    removed_ += counts->removed_since_clear;
    if (removed_ > stored_) whole_ = false;  // it held more than was heard of
  }
  state_.knowledge = whole_ ? CacheKnowledge::complete : CacheKnowledge::partial;
  state_.held_blocks = whole_ ? stored_ - removed_ : 0;
}

}  // namespace signalbox::engine_proxy
