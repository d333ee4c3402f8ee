// From an HTTP request to what the dispatcher asks: its facts, or the refusal that its sender deserves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/cluster_router/http/request_shape.hpp"
#include "actors/cluster_router/net/server.hpp"
#include "actors/cluster_router/routing/request.hpp"
#include "messages/base/result.hpp"

namespace signalbox::gateway {

/// A request that cannot be routed, with what its sender is told.
struct Misfit {
  int status = 400;
  std::string_view reason;  ///< machine-readable
  std::string message;
  std::string param;  ///< the faulty part; may be empty
};

/// A request that can. `facts` holds views into the request, into `unpacked` and into `shape`.
struct Reading {
  http::Endpoint endpoint = http::Endpoint::other;
  std::string unpacked;  ///< of a compressed body
  http::RequestShape shape;
  routing::RequestFacts facts;
};

struct ReaderOptions {
  std::uint64_t fleet_secret = 0;  ///< keys the hashes of prompts
  std::uint32_t block_bytes = routing::default_block_bytes;
  std::size_t max_body_bytes = 64u << 20;    ///< of a compressed body, once it is unpacked
  std::string default_tenant = "anonymous";  ///< of a request that names none
};

/// Who asks, as its API key says; by default anyone, who says himself.
struct Caller {
  std::string_view tenant;  ///< empty: the request names it
  Criticality most = Criticality::critical;
};

/// Reads requests; one per event loop.
class RequestReader {
 public:
  explicit RequestReader(ReaderOptions options) : options_(std::move(options)) {}
  /// Fills `out`, which must stay where it is while its facts are used.
  tl::expected<void, Misfit> read(const net::Request& request, Reading& out, const Caller& caller = {});

 private:
  tl::expected<void, Misfit> unpack(std::string_view coding_name, std::string_view& body,
                                    std::string& out) const;

  ReaderOptions options_;
  http::ShapeReader shapes_;
};

}  // namespace signalbox::gateway
