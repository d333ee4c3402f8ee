// One event loop's connections to the engines, by EngineIndex.
#pragma once

#include <memory>
#include <vector>

#include "actors/cluster_router/gateway/routes.hpp"
#include "actors/cluster_router/net/client.hpp"

namespace signalbox::gateway {

/// An engine and its pool. Attempts under way keep it when a new table drops it.
struct Engine {
  EngineDoor door;
  std::unique_ptr<net::Upstream> upstream;  ///< null: its address is not known
};

class Engines {
 public:
  explicit Engines(net::Loop& loop) : loop_(loop) {}

  /// Takes over a new table's engines; the pools of those whose address is unchanged live on.
  void adopt(std::shared_ptr<const AddressBook> doors);
  /// Null for an index that the table does not have.
  std::shared_ptr<Engine> at(EngineIndex index) const;
  void close_idle();

 private:
  std::shared_ptr<Engine> open(const EngineDoor& door);

  net::Loop& loop_;
  std::shared_ptr<const AddressBook> doors_;
  std::vector<std::shared_ptr<Engine>> engines_;
};

}  // namespace signalbox::gateway
