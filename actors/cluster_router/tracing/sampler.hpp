// Which requests are traced. A client's word counts (its trace is recorded or not as a whole); of the requests that come
// without a trace a share is, by their decisions' ids.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/cluster_router/routing/publishing.hpp"
#include "actors/cluster_router/tracing/context.hpp"
#include "actors/cluster_router/tracing/trace.hpp"

namespace signalbox::tracing {

struct SamplerOptions {
  bool on = false;
  double share = 0.01;  ///< of the requests without a trace, [0, 1]
  double per_s = 100;   ///< traces at most, so that clients cannot make this router busy with them
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options), rate_(options.per_s) {}

  /// The beginning of this request's trace, its ids alone; null if it is not traced.
  std::unique_ptr<Trace> begin(const http::Fields& fields, const routing::DecisionId& decision, Instant now);
  /// Requests that were to be traced when there had been too many.
  std::uint64_t limited() const { return limited_; }

 private:
  SamplerOptions options_;
  routing::PublishRate rate_;
  std::uint64_t limited_ = 0;
};

}  // namespace signalbox::tracing
