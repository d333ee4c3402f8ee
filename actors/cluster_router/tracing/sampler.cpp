#include "actors/cluster_router/tracing/sampler.hpp"

#include <fmt/format.h>

#include "messages/base/rng.hpp"

namespace signalbox::tracing {
namespace {

/// A uniform number of [0, 1) that belongs to this decision.
double lot_of(const routing::DecisionId& decision) {
  return static_cast<double>(mix64(mix64(~decision.life) ^ decision.count) >> 11) * 0x1.0p-53;
}

/// The lower half is odd: no id is all zeros.
std::string new_trace_id(const routing::DecisionId& decision) {
  return fmt::format("{:016x}{:016x}", mix64(decision.life ^ mix64(decision.count)),
                     mix64(decision.count ^ mix64(decision.life + 1)) | 1);
}

}  // namespace

std::unique_ptr<Trace> Sampler::begin(const http::Fields& fields, const routing::DecisionId& decision,
                                      Instant now) {
  if (!options_.on) return nullptr;
  const auto parent = traceparent_of(fields);
  if (parent ? !parent->sampled() : lot_of(decision) >= options_.share) return nullptr;
  if (!rate_.take(1, now)) {
    ++limited_;
    return nullptr;
  }
  auto trace = std::make_unique<Trace>();
  trace->decision = decision;
  if (parent)
    trace->id = parent->trace, trace->parent = parent->span;
  else
    trace->id = new_trace_id(decision);
  return trace;
}

}  // namespace signalbox::tracing
