// What each tenant of a class was served of late: who waits is served least first.
//
// Tokens are counted with a half-life. Instead of fading what was, new tokens count for more: all sums carry the same
// factor, so that they compare, and one exponential per request is enough.
//
// Refused alternative: virtual finish times (Demers 1989). They need a lift for tenants that were idle, or these would
// take everything; a half-life forgets for both.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/cluster_router/routing/flat_map.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::routing {

class TenantShares {
 public:
  static constexpr double half_life_s = 10;
  static constexpr std::size_t most_tenants =
      4'096;  ///< of all classes; those served least are forgotten first

  /// Tenants are counted anew with a new policy, whose classes are others.
  void clear();
  /// `tokens` may be negative, where less came of a request than was expected.
  void charge(ClassIndex request_class, std::uint64_t tenant, double tokens, Instant now);
  /// In a unit that all tenants share.
  double used(ClassIndex request_class, std::uint64_t tenant) const;
  std::size_t size() const { return sums_.size(); }

 private:
  static std::uint64_t key_of(ClassIndex request_class, std::uint64_t tenant);
  double weight_at(Instant now);
  void forget_half();

  FlatMap<double> sums_;
  std::vector<std::uint64_t> keys_;  ///< of sums_
  Instant epoch_ = never_yet;        ///< when tokens count once
};

}  // namespace signalbox::routing
