// The heads that pass through the gateway: what of the client's goes to the engine, what of the engine's to the client.
// Both are block-listed: everything passes but what belongs to one connection, or to this router.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/cluster_router/gateway/routes.hpp"
#include "actors/cluster_router/http/head.hpp"

namespace signalbox::gateway {

/// Whose keys a client's credentials are: the engine's, to which they pass, or this router's, which never leave it.
enum class Credentials : std::uint8_t { of_engine, of_router };

/// What an attempt adds to its request's head.
struct Passage {
  std::size_t body_bytes = 0;
  std::string_view request_id;  ///< sent as x-request-id
  Credentials credentials = Credentials::of_engine;
  std::uint64_t span = 0;      ///< the attempt's own, for a request that is traced
  std::string_view new_trace;  ///< the id of a trace that begins here; empty: the client's, if it has one
};

/// The head of the request for an engine, through its empty line, with a Via that names this router (RFC 9110, 7.6.3).
std::string engine_request(const http::RequestHead& head, const EngineDoor& door, const Passage& passage);

/// The field lines of an engine's answer that its client gets. Without access-control-*: which pages may call is the router's
/// word alone.
struct ClientLines {
  std::string text;
  bool dated = false;  ///< a Date is among them
};
ClientLines client_lines(const http::Fields& fields);

/// What the client asked to be called, or `otherwise`. At most 128 characters.
std::string request_id_of(const http::Fields& fields, std::string_view otherwise);

}  // namespace signalbox::gateway
