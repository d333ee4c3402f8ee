#include "tools/simulate/world/bus.hpp"

#include <algorithm>

namespace signalbox::simulate {

void Bus::join(MemberId node, std::span<const std::string_view> hears, Receive receive) {
  Member& member = members_[node];
  member = {.hears = {hears.begin(), hears.end()}, .receive = std::move(receive), .life = ++lives_};
  for (const auto& [topic, kept] : kept_) {
    const auto& info = schema::info_of(kept.message->message);
    if (member.hears.contains(info.name) && queue_.now() - kept.said <= info.keep)
      send(kept.author, node, kept.message, kept.said);
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
    if (node != author && member.hears.contains(info.name)) send(author, node, delivery, queue_.now());
  return {};
}

void Bus::send(MemberId author, MemberId to, std::shared_ptr<const schema::Delivery> message, Instant said) {
  const auto delay = network_(author, to);
  if (!delay) return;
  Instant& last = last_arrival_.try_emplace({author, to}, never_yet).first->second;
  last = std::max(last, queue_.now() + *delay);
  queue_.at(last, [this, to, life = members_.at(to).life, message = std::move(message), said] {
    const auto member = members_.find(to);
    if (member == members_.end() || member->second.life != life) return;
    schema::Delivery delivery = *message;
    delivery.age = queue_.now() - said;
    ++delivered_;
    member->second.receive(delivery);
  });
}

}  // namespace signalbox::simulate
