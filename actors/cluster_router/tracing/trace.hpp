// A request that is traced: what its decision's record does not say of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "actors/cluster_router/http/request_shape.hpp"
#include "actors/cluster_router/routing/verdict.hpp"
#include "messages/schema/fleet_table.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::tracing {

struct Trace {
  std::string id;      ///< 32 hexadecimal digits
  std::string parent;  ///< 16 of the client's span; empty: the trace begins here
  routing::DecisionId decision;
  std::string method, path, request_id;
  http::Endpoint endpoint = http::Endpoint::other;
  std::uint32_t attempts = 0;       ///< made
  std::uint64_t input_tokens = 0;   ///< as the engine told; 0: it did not
  std::uint64_t output_tokens = 0;  ///< likewise
  std::string_view error;           ///< how it ended badly (a literal); empty: it ended well
};

/// A trace of a request that is over, with all that is said of it.
struct EndedTrace {
  Trace trace;
  schema::DecisionRecord record;
  std::shared_ptr<const schema::FleetTable>
      table;  ///< that the record's rows index; null: it is not known any more
};

}  // namespace signalbox::tracing
