// Who is let in, who waits, who is refused when there is not enough.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/cluster_router/routing/verdict.hpp"
#include "cluster-config/policy/compiled.hpp"
#include "messages/base/criticality.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/rng.hpp"
#include "messages/base/time.hpp"

namespace signalbox::routing {

/// Admits a share of each class's requests, evenly spaced: of any n in a row, share*n are admitted, give or take one.
class PlanGate {
 public:
  /// One credit per class; `from[i]` is the old row of class i, or none.
  void remap(const std::vector<ClassIndex>& from);
  bool admit(ClassIndex request_class, double share);

 private:
  std::vector<double> credit_;
};

/// A request that found every engine of its class at its limit.
struct Waiting {
  Ticket ticket;
  ClassIndex request_class;
  Criticality criticality = Criticality::sheddable;
  bool alone =
      false;      ///< a retry, or bound to one engine: that it cannot go does not mean that its class cannot
  Instant until;  ///< refused then
};

/// The bounded queues of all classes, as one list: the most critical first, then the earliest deadline.
class WaitingRoom {
 public:
  /// Puts it in its place. A class whose queue of `depth` is full gives up its last, if that matters less than the
  /// newcomer: that one is returned. Otherwise the newcomer itself is.
  std::optional<Waiting> add(const Waiting& newcomer, std::size_t depth);
  void remove(Ticket ticket);
  /// The one whose time is up longest, if any is.
  std::optional<Waiting> expired(Instant now) const;
  /// The earliest `until`; end_of_time when nobody waits.
  Instant earliest() const;
  /// In order of precedence.
  std::span<const Waiting> all() const { return waiting_; }
  /// `to[i]` is the new row of class i, or none; those whose class is gone are taken out and returned.
  std::vector<Waiting> remap(const std::vector<ClassIndex>& to);

 private:
  std::vector<Waiting> waiting_;
};

/// How fast requests leave: what Retry-After is computed from.
class DrainRate {
 public:
  void left(Instant now);
  /// When a newcomer behind `waiting` others may expect a place: waiting over the rate, with +-20 % jitter, rounded up to
  /// seconds, within the policy's bounds.
  Duration retry_after(std::size_t waiting, const policy::Queue& bounds, Instant now, Rng& rng) const;

 private:
  double per_s_ = 0;  ///< smoothed over some seconds
  Instant last_ = never_yet;
};

}  // namespace signalbox::routing
