// Whether a leader is heard. On the bus standbys miss a leader themselves; a lease in etcd would keep one that reaches etcd and
// not the bus.
#pragma once

#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::global_optimizer {

class Echo {
 public:
  /// It leads, or has published nothing yet.
  void begin(Instant now) { heard_at_ = deaf_since_ = now, router_at_ = never_yet; }

  /// What came from others, while this version is its newest.
  void hear(const schema::Delivery& delivery, const SnapshotVersion& newest, Instant now) {
    heard_at_ = now;
    const auto* beat = std::get_if<schema::Beat>(&delivery.message);
    if (beat == nullptr || beat->role != Role::cluster_router) return;
    router_at_ = now;
    const bool follows =
        beat->snapshot.term == newest.term && beat->snapshot.sequence + behind >= newest.sequence;
    if (follows || newest.sequence == 0) deaf_since_ = now;
  }

  /// Nobody was heard for so long; or routers were, and none of them had taken what was published.
  bool is_cut_off(Duration patience, Instant now) const {
    if (heard_at_ < now - patience) return true;
    return router_at_ >= now - patience && deaf_since_ < now - patience;
  }

 private:
  static constexpr std::uint64_t behind = 2;  ///< snapshots that may be on their way
  Instant heard_at_ = never_yet, router_at_ = never_yet;
  Instant deaf_since_ = never_yet;  ///< a router that had taken what was published was heard then
};

}  // namespace signalbox::global_optimizer
