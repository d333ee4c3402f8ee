// What an engine costs at a given load, from the physics of continuous batching.
//
// One step of an engine that decodes N sequences and prefills F prompt tokens lasts  s * (a + b*N + k*context
// + c*F). A request with U uncached prompt tokens, O output tokens and a mean context of L tokens needs O
// steps of its own and adds
//     w = s * (O * (b + k*L) + c*U)                                                    [engine-seconds of
//     work]
// to the steps of everybody. At request rates r_i the load is y = sum r_i w_i [work seconds per second]. In
// the steady state a step lasts T = s*a + T*y, so T = s*a / (1 - y): with U = 0, k = 0 and a token rate t
// this is a / (1 - b*t). A prefill is stretched alike, since it shares its steps with the decodes: a request
// that takes l0 = s * (O*a + c*U) on an empty engine takes l0 / (1 - y), and by Little's law  q*y / (1 - y)
// requests are in flight, where q = l0 / w of the engine's mean request. That number is the rate at which
// latency accrues [seconds of latency per second]: the cost G(y) that the plan minimises.
//
// An engine that delivers only a part h of its capacity (degraded, starting) has its pole at h instead of 1.
// Sources: the step-time model and its fits, docs of the profiles; Little (1961); the price u*l0 / ((1-u)^2
// w) of the routing rule is this G' less the request's own latency.
#pragma once

#include "messages/base/result.hpp"

namespace signalbox::optimizer {

/// Step time of one engine: a_s + b_s * sequences + k_s * context tokens + c_s * prefilled tokens, all in
/// seconds, times `slowness`.
struct StepTime {
  double a_s = 0;         ///< of an empty step; > 0
  double b_s = 0;         ///< per sequence decoded
  double k_s = 0;         ///< per token of context held by the decoded sequences
  double c_s = 0;         ///< per prompt token prefilled
  double slowness = 1.0;  ///< measured over predicted time; 1: as the profile says
};

/// What a mean request of a class asks of an engine.
struct RequestShape {
  double uncached_prompt_tokens = 0;  ///< prompt tokens that must be prefilled
  double output_tokens = 0;
  double context_tokens = 0;  ///< mean tokens held while decoding: prompt + output / 2
};

/// How much a second of time to first token, and of time between tokens, counts in the objective.
struct LatencyWeights {
  double ttft = 1.0;
  double tpot = 1.0;
};

/// Engine-seconds of work that one request adds to everybody's steps.
double work_s(const StepTime& step, const RequestShape& shape);
/// Weighted latency of one request on an otherwise empty engine, in seconds.
double unloaded_latency_s(const StepTime& step, const RequestShape& shape, const LatencyWeights& weights);
/// The load at which `in_flight` mean requests of (l0, w) are in flight on an engine with this capacity: y =
/// c n / (n + q c), q = l0 / w.
double load_at_in_flight(double in_flight, double unloaded_latency_s, double work_s, double capacity);

/// G(y) = q y / (1 - y/c): the convex cost of load y on one engine, or on n identical ones when c is n times
/// theirs. Above `ceiling` (< capacity) it goes on as the quadratic with the same value, slope and curvature,
/// so that every load has a finite cost. Loads and capacities in work seconds per second; costs in seconds of
/// latency per second; prices in seconds of latency per second of work.
struct CongestionCurve {
  double q = 0;         ///< latency per work of the mean request on an empty engine; > 0
  double capacity = 1;  ///< the pole; > 0
  double ceiling = 0;   ///< the greatest load that a plan may give it; 0 <= ceiling < capacity

  double cost(double load) const;
  double marginal(double load) const;   ///< G'
  double curvature(double load) const;  ///< G''
  /// The load in [0, ceiling] at which the marginal cost is `price`: the maximiser of price*y - G(y) there.
  double load_at(double price) const;
  /// The conjugate of G restricted to [0, ceiling]: max over y of price*y - G(y). Convex, zero up to q, slope
  /// load_at(price).
  double conjugate(double price) const;
};

}  // namespace signalbox::optimizer
