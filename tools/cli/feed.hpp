// A view of the fleet that is kept up to date: from a bus, in the bus's own thread, or from a recording at a chosen speed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/source.hpp"
#include "tools/fleet_view/timeline.hpp"

namespace signalbox::cli {

struct FeedOptions {
  std::vector<std::string> subscriptions;
  double speed = 1;  ///< of a recording: recorded seconds a second
  /// Called with every message after the view has taken it, under the lock; must only look.
  std::function<void(const schema::Delivery&, const fleet_view::FleetView&, Instant)> on_message;
  /// The view was emptied: a recording begins anew. Under the lock.
  std::function<void()> on_restart;
};

class Feed {
 public:
  /// Errors: as join_bus().
  static Result<std::unique_ptr<Feed>> start(Source source, FeedOptions options);

  /// Calls f(view, timeline, now), with the view as it is now. Thread-safe.
  template <class F>
  auto with(F&& f) {
    const std::lock_guard lock(mutex_);
    advance();
    return f(std::as_const(view_), std::as_const(timeline_), now());
  }
  /// Of a recording: stops its time, or lets it go on; moves it to a time since its begin. Thread-safe.
  void hold(bool held);
  void seek(double seconds);
  /// Seconds since the recording's begin, and its length; nothing for a bus.
  struct Position {
    double at_s = 0, length_s = 0;
    bool held = false;
  };
  std::optional<Position> position();

  /// Something was heard, or a forwarder is there.
  bool is_there() const;
  const Source& source() const { return source_; }

 private:
  Feed(Source source, FeedOptions options) : source_(std::move(source)), options_(std::move(options)) {}
  void advance();
  void take(const schema::Delivery& delivery, Instant now);
  Instant now() const;
  void restart(Instant recorded);

  Source source_;
  FeedOptions options_;
  mutable std::mutex mutex_;
  fleet_view::FleetView view_;
  fleet_view::Timeline timeline_;
  std::optional<recording::Replayed> next_;
  Instant began_{};           ///< when the recording's time was last set going, by our clock
  Instant recorded_began_{};  ///< the recording's time then
  bool held_ = false;
  std::unique_ptr<bus::Node> node_;  ///< last: its thread uses the rest
};

}  // namespace signalbox::cli
