// The heads that pass through the gateway: what of the client's goes to the engine, what of the engine's to the client.
// Both are block-listed: everything passes but what belongs to one connection, or to this router.
#pragma once

#include <string>
#include <string_view>

#include "actors/cluster_router/gateway/routes.hpp"
#include "actors/cluster_router/http/head.hpp"

namespace signalbox::gateway {

/// Whose keys a client's credentials are: the engine's, to which they pass, or this router's, which never leave it.
enum class Credentials : std::uint8_t { of_engine, of_router };

/// The head of the request for an engine, through its empty line. `request_id` goes along as x-request-id, and a Via that
/// names this router (RFC 9110, 7.6.3).
std::string engine_request(const http::RequestHead& head, const EngineDoor& door, std::size_t body_bytes,
                           std::string_view request_id, Credentials credentials = Credentials::of_engine);

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
