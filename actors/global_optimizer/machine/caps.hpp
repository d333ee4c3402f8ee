// Holds one row's weights within the policy's caps per engine and failure domain, and spreads them over as many engines and racks
// as it asks for, by construction. The solver knows the caps: of its flows only what rounding or a cap that no plan can keep leaves over is moved.
#pragma once

#include <limits>
#include <vector>

#include "actors/global_optimizer/machine/domains.hpp"
#include "messages/schema/plan.hpp"

namespace signalbox::global_optimizer {

/// One engine's place in a row.
struct Share {
  EngineIndex engine;
  double weight = 0;
  /// How much of what others must give up it may take, relative to the others; 0 for engines that get nothing new.
  double room = 0;
  double dearer_s =
      0;  ///< what a request costs more here than where it is cheapest: cheap engines take first
  double most =
      std::numeric_limits<double>::infinity();  ///< share that it has free, taken as long as others have some
  double fair = 0;                              ///< its share if all went by capacity
};

/// Whether a row keeps what the policy says of rows, with that tolerance.
bool keeps_caps(const std::vector<Share>& row, const Domains& domains, const policy::Limits& limits);
bool keeps_spread(const std::vector<Share>& row, const Domains& domains, const policy::ClassRow& c);

/// Moves weight from what is over a cap to what has room under all of its caps, the cheapest first. Where the caps leave too
/// little room for the whole row, the rest is spread by room alone. Weights sum to what they summed to.
void hold_caps(std::vector<Share>& row, const Domains& domains, const policy::Limits& limits);

/// Both limits, as far as the engines with room suffice; `c` is the row's class. Says what each moved, and what is not held.
void hold_row(std::vector<Share>& row, const Domains& domains, const policy::CompiledPolicy& policy,
              ClassIndex c, std::vector<schema::LimitRow>& binding);

/// By how much `fair` must be mixed in for `holds` to be true of a row that does not hold: the least share found by halving, or
/// nothing if the fair row itself does not hold.
template <class Holds>
std::optional<double> least_mixture(Holds holds) {
  constexpr int halvings = 30;
  if (!holds(1.0)) return std::nullopt;
  double fails = 0, does = 1;
  for (int i = 0; i < halvings; ++i) {
    const double half = (fails + does) / 2;
    (holds(half) ? does : fails) = half;
  }
  return does;
}
inline double mixed(const Share& share, double mixture) {
  return share.weight + mixture * (share.fair - share.weight);
}

}  // namespace signalbox::global_optimizer
