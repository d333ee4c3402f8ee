// The answer to one Problem, with the proof of its quality and the numbers that explain it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// The parts of the objective that the solver sees, in seconds of latency per second.
enum class ObjectiveTerm : std::uint8_t { pairs, congestion, churn, shed };
inline constexpr std::size_t term_count = 4;
std::string_view to_string(ObjectiveTerm term);
std::string_view explain(ObjectiveTerm term);

/// objective >= optimum >= lower_bound: the bound is the dual value at `Plan::price`, evaluated against all
/// engines.
struct Certificate {
  double objective = 0;
  double lower_bound = 0;
  /// (objective - lower_bound) / max(|lower_bound|, 1e-9)
  double relative_gap = 0;
};

enum class Limit : std::uint8_t { engine_ceiling, shed, floor };
std::string_view to_string(Limit limit);
std::string_view explain(Limit limit);

/// A limit that holds with equality and what one unit more of it would save.
struct BindingLimit {
  Limit limit = Limit::engine_ceiling;
  std::uint32_t row = 0;  ///< an EngineIndex for engine_ceiling, else a SourceIndex
  double value_s =
      0;  ///< seconds of latency saved per unit of work (ceiling) or per request admitted (shed, floor)
};

/// Why the solver stopped.
enum class Stop : std::uint8_t { certified, iterations, stalled };
std::string_view to_string(Stop stop);
std::string_view explain(Stop stop);

struct Plan {
  std::vector<double> flow_per_s;      ///< requests/s by PairIndex
  std::vector<double> shed_per_s;      ///< requests/s refused by SourceIndex
  std::vector<double> load;            ///< work seconds per second by EngineIndex
  std::vector<double> price;           ///< seconds of latency that one more work second costs, by EngineIndex
  std::vector<double> source_price_s;  ///< cost of one more request, by SourceIndex
  Certificate certificate;
  std::array<double, term_count> terms{};  ///< by ObjectiveTerm; their sum is the objective
  std::vector<BindingLimit> binding;       ///< by limit, then row
  std::uint32_t sweeps = 0;                ///< passes of the primal over all flows
  std::uint32_t dual_iterations = 0;       ///< iterations of the dual method
  Stop stop = Stop::iterations;
};

/// Work seconds per second by EngineIndex, of flows by PairIndex.
std::vector<double> loads_of(const Problem& problem, std::span<const double> flow_per_s);
/// The parts of the objective, by ObjectiveTerm.
std::array<double, term_count> objective_terms(const Problem& problem, std::span<const double> flow_per_s,
                                               std::span<const double> shed_per_s,
                                               std::span<const double> load);

/// What refusing so much costs, in seconds of latency per second.
double refused_cost(const Problem& problem, std::span<const double> shed_per_s);

/// Share of the source's demand that is admitted, in [0, 1]; 1 without demand.
double admit_fraction(const Problem& problem, const Plan& plan, SourceIndex source);
/// Share of the source's admitted demand that goes to this pair: the weight that is published. 0 when nothing
/// is admitted.
double weight(const Problem& problem, const Plan& plan, SourceIndex source, PairIndex pair);
/// How much dearer one request on this pair is than the source's price: 0 where it is used, and for an unused
/// one "would be used if this much nearer", in seconds.
double reduced_cost_s(const Problem& problem, const Plan& plan, SourceIndex source, PairIndex pair);
/// The share of its engine's load that would have to go, all else being as it is, for the source to use this pair: 0 where it
/// is used. Nothing if it would not be used even on an idle engine.
std::optional<double> less_loaded(const Problem& problem, const Plan& plan, SourceIndex source,
                                  PairIndex pair);

}  // namespace signalbox::optimizer
