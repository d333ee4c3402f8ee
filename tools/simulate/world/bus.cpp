#include "tools/simulate/world/bus.hpp"

#include <algorithm>

namespace signalbox::simulate {

void Bus::join(MemberId node, std::span<const std::string_view> hears, Receive receive) {
  Member& member = members_[node];
  member = {};
  member.hears = {hears.begin(), hears.end()};
  member.receive = std::move(receive);
  member.life = ++lives_;
  for (const auto& [topic, kept] : kept_) {
    const auto& info = schema::info_of(kept.message->message);
    if (member.hears.contains(info.name) && queue_.now() - kept.said <= info.keep)
      send(kept.author, node, kept.message, queue_.now() - kept.said);
  }
}

void Bus::leave(MemberId node) { members_.erase(node); }

Status Bus::say(MemberId author, const ProcessName& name, const Incarnation& incarnation,
                schema::Message message) {
  if (Status fine = schema::check(message); !fine) return fine;
  const schema::MessageInfo& info = schema::info_of(message);
  auto delivery = std::make_shared<schema::Delivery>();
  delivery->topic = schema::topic_of(message, name);
  const Duration sent = queue_.now().time_since_epoch();
  delivery->envelope = {.source = name,
                        .incarnation = incarnation,
                        .sequence = ++sequences_[{author, delivery->topic}],
                        .sent = sent,
                        .sent_wall = sent,
                        .kind = info.kind,
                        .version = info.version,
                        .config_fingerprint = 0};
  delivery->message = std::move(message);
  ++said_;
  if (tap_) tap_(delivery->message, delivery->envelope);
  if (info.keep > Duration::zero()) kept_[delivery->topic] = {delivery, author, queue_.now()};
  for (const auto& [node, member] : members_)
    if (node != author && member.hears.contains(info.name)) send(author, node, delivery, std::nullopt);
  return {};
}

void Bus::send(MemberId author, MemberId to, std::shared_ptr<const schema::Delivery> message,
               std::optional<Duration> hop) {
  const Passage passage = network_(author, to);
  const std::uint64_t life = members_.at(to).life;
  const auto pass = [&](Instant when) {
    queue_.at(when, [this, to, life, message, hop] { arrive(to, life, *message, hop); });
  };
  if (passage.delay) {
    Instant when = queue_.now() + *passage.delay;
    Instant& last = last_arrival_.try_emplace({author, to}, never_yet).first->second;
    if (passage.in_order) when = last = std::max(last, when);
    pass(when);
  }
  if (passage.again) pass(queue_.now() + *passage.again);
}

void Bus::arrive(MemberId to, std::uint64_t life, const schema::Delivery& message,
                 std::optional<Duration> hop) {
  const auto member = members_.find(to);
  if (member == members_.end() || member->second.life != life) return;
  const schema::MessageInfo& info = schema::info_of(message.message);
  schema::Arrivals& arrivals = member->second.arrivals;
  auto unwelcome = arrivals.refuse(message.envelope, message.topic, info);
  Duration age{};
  if (!unwelcome) {
    const schema::Arrival arrival = arrivals.accept(message.envelope, message.topic, info, hop, queue_.now());
    unwelcome = arrival.refused;
    age = arrival.age;
  }
  if (unwelcome && !(let_in_ && let_in_(to, message, *unwelcome))) {
    ++dropped_[*unwelcome];
    return;
  }
  schema::Delivery delivery = message;
  delivery.age = age;
  ++delivered_;
  member->second.receive(delivery);
}

}  // namespace signalbox::simulate
