// The bounded queues of those who found every engine of their class at its limit.
//
// A flow is the requests of one class, criticality and tenant, in the order in which their time is up. Who goes next:
//
//   a class that is owed its floor  >  the more critical  >  [within a class] the tenant that was served less of late
//                                                         >  whose time is up first
//
// Refused alternative: one list by deadline. A tenant that sends ten times as much then gets ten times as much.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/cluster_router/routing/admission.hpp"
#include "actors/cluster_router/routing/tenant_shares.hpp"
#include "actors/cluster_router/routing/verdict.hpp"
#include "messages/base/criticality.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::routing {

/// A request that found every engine of its class at its limit.
struct Waiting {
  Ticket ticket;
  ClassIndex request_class;
  Criticality criticality = Criticality::sheddable;
  std::uint64_t tenant = 0;  ///< hash of its name
  bool alone =
      false;      ///< a retry, or bound to one engine: that it cannot go does not mean that its class cannot
  Instant until;  ///< refused then
};

class WaitingRoom {
 public:
  /// Waiting requests that are equal in all but their time; never empty. One that is alone is a flow of its own.
  struct Flow {
    ClassIndex request_class;
    Criticality criticality = Criticality::sheddable;
    std::uint64_t tenant = 0;
    bool alone = false;
    std::vector<Waiting> line;  ///< the earliest `until` first
  };

  /// Puts it in its place. A class whose queue of `depth` is full gives up one that matters less than the newcomer, else
  /// the last of a tenant that holds at least two places more than the newcomer's: that one is returned. Otherwise the
  /// newcomer itself is.
  std::optional<Waiting> add(const Waiting& newcomer, std::size_t depth);
  void remove(Ticket ticket);
  /// The one whose time is up longest, if any is.
  std::optional<Waiting> expired(Instant now) const;
  /// The earliest `until`; end_of_time when nobody waits.
  Instant earliest() const;
  /// Those who may go next, in order of precedence: of each class and criticality one, and all who are alone. Valid until
  /// the next change.
  std::span<const Waiting> next(const TenantShares& shares, const FloorCredits& floors);
  std::span<const Flow> flows() const { return flows_; }
  std::size_t size() const { return size_; }
  /// `to[i]` is the new row of class i, or none; those whose class is gone are taken out and returned.
  std::vector<Waiting> remap(const std::vector<ClassIndex>& to);

 private:
  Flow& flow_of(const Waiting& newcomer);
  Flow* least_of(ClassIndex request_class);
  Waiting take_last(Flow& flow);
  void drop_if_empty(Flow& flow);

  std::vector<Flow> flows_;  ///< by class, criticality
  std::size_t size_ = 0;
  std::vector<Waiting> next_;  ///< scratch of next()
};

}  // namespace signalbox::routing
