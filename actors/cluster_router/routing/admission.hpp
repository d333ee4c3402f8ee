// Who is let in and who is refused when there is not enough. Who waits: waiting_room.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster-config/policy/compiled.hpp"
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

/// What each class is owed by its floor: the share of its requests that is served whatever else waits.
class FloorCredits {
 public:
  /// `from[i]` is the old row of class i, or none.
  void remap(const std::vector<ClassIndex>& from);
  void offered(ClassIndex request_class, double floor_share);
  void admitted(ClassIndex request_class);
  /// One of its requests goes before all that is not owed.
  bool owes(ClassIndex request_class) const { return credit_[request_class.at()] >= 1.0; }

 private:
  static constexpr double most = 8;  ///< a class that was owed for long gets no more than this at once
  std::vector<double> credit_;       ///< floor * offered - admitted, in [-1, most]
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
