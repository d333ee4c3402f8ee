// What a gateway routes by, as one immutable value: the dispatcher's view, and where the engines of its fleet table are.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster_router/net/stream.hpp"
#include "actors/cluster_router/net/tls.hpp"
#include "actors/cluster_router/routing/handover.hpp"
#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::gateway {

/// How this router speaks to one engine, from its own configuration: never from the bus.
struct EngineAccess {
  std::size_t connections = 16;  ///< idle ones kept at most
  std::optional<std::string>
      authorization;            ///< sent in place of the client's; absent: the client's is passed on
  std::string tls_authorities;  ///< a PEM file of who may sign its certificate; empty: the system's
};
using EngineAccessMap = std::map<EngineName, EngineAccess>;

/// One engine as an event loop reaches it.
struct EngineDoor {
  EngineName name;
  std::string authority;                      ///< for the Host field
  std::optional<net::Address> address;        ///< absent: it cannot be reached safely, `problem` says why
  std::shared_ptr<const net::TlsClient> tls;  ///< null: plain HTTP
  std::string problem;
  EngineAccess access;
};

/// By EngineIndex.
using AddressBook = std::vector<EngineDoor>;

/// Resolves every engine of the table and reads who vouches for it. May block: for the actor's thread.
std::shared_ptr<const AddressBook> build_address_book(const schema::FleetTable& table,
                                                      const EngineAccessMap& access);

struct Routes {
  std::shared_ptr<const routing::View> view;
  std::shared_ptr<const AddressBook> doors;  ///< of view->table
};

}  // namespace signalbox::gateway
