#include "optimizer/model/service_curve.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::optimizer {

double work_s(const StepTime& step, const RequestShape& shape) {
  const double decode = shape.output_tokens * (step.b_s + step.k_s * shape.context_tokens);
  return step.slowness * (decode + step.c_s * shape.uncached_prompt_tokens);
}

double unloaded_latency_s(const StepTime& step, const RequestShape& shape, const LatencyWeights& weights) {
  const double decode = weights.tpot * shape.output_tokens * step.a_s;
  return step.slowness * (decode + weights.ttft * step.c_s * shape.uncached_prompt_tokens);
}

double load_at_in_flight(double in_flight, double latency_s, double work, double capacity) {
  return capacity * in_flight * work / (in_flight * work + latency_s * capacity);
}

double CongestionCurve::cost(double load) const {
  if (load <= ceiling) return q * load / (1.0 - load / capacity);
  const double over = load - ceiling;
  return cost(ceiling) + over * (marginal(ceiling) + 0.5 * over * curvature(ceiling));
}

double CongestionCurve::marginal(double load) const {
  if (load > ceiling) return marginal(ceiling) + (load - ceiling) * curvature(ceiling);
  const double idle = 1.0 - load / capacity;
  return q / (idle * idle);
}

double CongestionCurve::curvature(double load) const {
  const double idle = 1.0 - std::min(load, ceiling) / capacity;
  return 2.0 * q / (capacity * idle * idle * idle);
}

double CongestionCurve::load_at(double price) const {
  if (price <= q) return 0.0;
  return std::min(ceiling, capacity * (1.0 - std::sqrt(q / price)));
}

double CongestionCurve::conjugate(double price) const {
  const double load = load_at(price);
  return load > 0.0 ? price * load - cost(load) : 0.0;
}

}  // namespace signalbox::optimizer
