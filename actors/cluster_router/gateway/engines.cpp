#include "actors/cluster_router/gateway/engines.hpp"

#include <map>
#include <utility>

namespace signalbox::gateway {
namespace {

bool same_door(const EngineDoor& a, const EngineDoor& b) {
  const bool same_tls = a.tls && b.tls ? a.tls->digest() == b.tls->digest() : a.tls == b.tls;
  return a.address && b.address && a.address->text() == b.address->text() && a.authority == b.authority &&
         same_tls && a.access.connections == b.access.connections &&
         a.access.authorization == b.access.authorization;
}

}  // namespace

void Engines::adopt(std::shared_ptr<const AddressBook> doors) {
  if (doors == doors_ || doors == nullptr) return;
  doors_ = std::move(doors);
  std::map<EngineName, std::shared_ptr<Engine>> before;
  for (auto& engine : engines_) before.emplace(engine->door.name, std::move(engine));
  engines_.clear();
  for (const EngineDoor& door : *doors_) {
    const auto found = before.find(door.name);
    const bool kept = found != before.end() && same_door(found->second->door, door);
    engines_.push_back(kept ? found->second : open(door));
  }
}

std::shared_ptr<Engine> Engines::open(const EngineDoor& door) {
  auto engine = std::make_shared<Engine>();
  engine->door = door;
  net::PoolSettings settings;
  settings.max_idle = door.access.connections;
  settings.tls = door.tls;
  if (door.address) engine->upstream = std::make_unique<net::Upstream>(loop_, *door.address, settings);
  return engine;
}

std::shared_ptr<Engine> Engines::at(EngineIndex index) const {
  return index.valid() && index.at() < engines_.size() ? engines_[index.at()] : nullptr;
}

void Engines::close_idle() {
  for (const auto& engine : engines_)
    if (engine->upstream) engine->upstream->close_idle();
}

}  // namespace signalbox::gateway
