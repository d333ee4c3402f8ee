#include "tools/cli/feed.hpp"

#include <algorithm>

#include "tools/cli/observer.hpp"

namespace signalbox::cli {

Result<std::unique_ptr<Feed>> Feed::start(Source source, FeedOptions options) {
  std::unique_ptr<Feed> out(new Feed(std::move(source), std::move(options)));
  if (out->source_.recording) {
    const recording::Reader& reader = *out->source_.recording;
    out->restart(std::min(out->source_.until, reader.first()));
    return out;
  }
  bus::NodeHandlers handlers;
  handlers.on_delivery = [feed = out.get()](const schema::DeliveryPtr& delivery) {
    const std::lock_guard lock(feed->mutex_);
    feed->take(*delivery, monotonic_now());
  };
  auto node = join_source(out->source_, out->options_.subscriptions, std::move(handlers));
  if (!node) return tl::unexpected(std::move(node.error()));
  out->node_ = std::move(*node);
  return out;
}

Instant Feed::now() const {
  if (!source_.recording) return monotonic_now();
  if (held_) return recorded_began_;
  return recorded_began_ + from_seconds(to_seconds(monotonic_now() - began_) * options_.speed);
}

/// From here on, with everything that was said before.
void Feed::restart(Instant recorded) {
  if (recorded < now() || !next_) {
    source_.recording->seek(source_.recording->first());
    view_ = {};
    timeline_ = {};
    if (options_.on_restart) options_.on_restart();
    next_ = source_.recording->next();
  }
  recorded_began_ = recorded;
  began_ = monotonic_now();
}

void Feed::advance() {
  if (!source_.recording) return;
  const Instant until = std::min(now(), source_.until);
  for (; next_ && next_->arrived <= until; next_ = source_.recording->next())
    take(*next_->delivery, next_->arrived);
}

void Feed::take(const schema::Delivery& delivery, Instant now) {
  view_.on(delivery, now);
  timeline_.on(delivery, now);
  if (options_.on_message) options_.on_message(delivery, view_, now);
}

void Feed::hold(bool held) {
  const std::lock_guard lock(mutex_);
  recorded_began_ = now();
  began_ = monotonic_now();
  held_ = held;
}

void Feed::seek(double seconds) {
  const std::lock_guard lock(mutex_);
  if (!source_.recording) return;
  const recording::Reader& reader = *source_.recording;
  restart(std::clamp(reader.first() + from_seconds(seconds), reader.first(), reader.last()));
}

std::optional<Feed::Position> Feed::position() {
  const std::lock_guard lock(mutex_);
  if (!source_.recording) return std::nullopt;
  const recording::Reader& reader = *source_.recording;
  return Position{to_seconds(std::min(now(), reader.last()) - reader.first()),
                  to_seconds(reader.last() - reader.first()), held_};
}

bool Feed::is_there() const {
  if (source_.recording) return true;
  const bus::NodeStats stats = node_->stats();
  return stats.forwarders_joined > 0 || stats.received.total().accepted > 0;
}

}  // namespace signalbox::cli
