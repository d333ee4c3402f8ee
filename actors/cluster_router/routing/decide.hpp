// Which engine serves this request: the one rule of the data plane.
//
//   candidates  = a few draws by weight times penalty, half of them even once the plan is old
//                 +  the engines that hold the longest known part of the prompt
//                 +  those that the plan means to hold its hot prefix, priced as if they did
//   cost(e)     = network
//               + queue     tw * c * P                                  prompts that wait there
//                           + max(0, (K+U+O)/KV - 1) * O * tpot         memory that must be freed first
//               + prefill   tw * c * U                                  what its cache misses
//               + decode    O * tpot
//               + price     eta * (D + p)/2 * W                         the delay to the others
//   tpot        = a + n*(b + c*Ubar/O) + k*min(K+L, KV)     n = min(N+1, Nmax); the context that is really there: an
//                                                           engine full of long prompts is slow with few of them
//   W           = c*U + O * (b + k*L)                       L = prompt + O/2, this request's own
//   D           = N * (1 + c*P / (O*(a + n*(b + k*ctx))))   those who are there, and those who come while the prompts
//                                                           that wait are computed: in the time that an answer takes
//                                                           undisturbed, as many as are there
//
// and the least cost wins. a, b, k, c carry the engine's slowness; p is the plan's price as a number of requests
// delayed; without a plan the draws are even and the price is eta_local * D * W. At the plan's own optimum these
// marginal costs are equal, so that the rule follows the plan where the plan is right, and departs from it where the
// request path knows better. Constants and their sensitivities: the policy's `routing`.
//
// Refused alternatives, by simulation: greedy choice by latency (herds, and ignores the batch that it delays);
// weights alone (blind to caches); consistent hashing with bounded load (one constant for all loads).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "actors/cluster_router/routing/cache_index.hpp"
#include "actors/cluster_router/routing/load.hpp"
#include "actors/cluster_router/routing/penalty.hpp"
#include "actors/cluster_router/routing/view.hpp"
#include "messages/base/bounded.hpp"
#include "messages/base/criticality.hpp"
#include "messages/base/rng.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

inline constexpr std::size_t max_draws = 8;
inline constexpr std::size_t max_candidates = 16;
inline constexpr std::size_t max_attempts = 8;
/// Engines of a class looked at, from a random one on, when draws found none with room.
inline constexpr std::size_t most_searched = 512;
/// An engine that is believed to have this many times its largest batch has a queue: what comes now waits here instead.
/// By Criticality: the critical need not wait until the router hears that a place is free.
inline constexpr std::array<double, criticality_count> full_batches{1.0, 1.0, 1.1};
/// A session leaves its engine when another costs less than this share of it.
inline constexpr double session_slack = 0.5;

/// A classified request, as decide() sees it. Tokens.
struct Ask {
  ClassIndex request_class;
  Criticality criticality = Criticality::standard;
  float prompt_tokens = 0;
  float output_tokens = 256;  ///< O, expected; > 0
  float context_tokens = 0;   ///< mean of its class while decoding
  float uncached_tokens = 0;  ///< Ubar, mean of its class
  float block_tokens = 256;   ///< of one block of `blocks`
  EngineIndex home;           ///< served this session before
  EngineIndex pinned;         ///< keeps this request's state: nowhere else
  std::span<const std::uint64_t> blocks;
  Placed placed;  ///< a beginning of the prompt, by the plan
};

using Tried = FixedVector<EngineIndex, max_attempts>;

/// In seconds.
struct CostParts {
  double network = 0;
  double queue = 0;
  double prefill = 0;
  double decode = 0;
  double price = 0;
  double total() const { return network + queue + prefill + decode + price; }
};

struct Candidate {
  EngineIndex engine;
  schema::CandidateFate fate;
  std::uint8_t draws;  ///< how often it was drawn and accepted
  bool holder;         ///< holds the longest known part of the prompt
  float weight;        ///< its share of the distribution drawn from; 0 if it was not drawn
  float penalty;
  float matched_tokens;  ///< of the prompt, believed to be in its cache
  Belief belief;
  CostParts cost;  ///< of those that were compared
};

/// Why there is an engine or none.
enum class Outcome : std::uint8_t {
  chosen,
  all_at_limit,   ///< eligible engines are there, each at its in-flight limit or with a full batch
  none_left,      ///< every eligible engine has been tried
  none_eligible,  ///< no engine of the class may get new requests
};

/// A decision with what it rests on. Candidates beyond `count` are not initialised.
struct Decision {
  Outcome outcome = Outcome::none_eligible;
  EngineIndex engine;    ///< valid if chosen
  bool planned = false;  ///< drawn by the plan's weights
  bool sticky = false;   ///< kept with its session, though another was cheaper
  std::uint8_t count = 0;
  std::uint8_t chosen = 0;  ///< row of `candidates`
  std::array<Candidate, max_candidates> candidates;

  std::span<const Candidate> considered() const { return {candidates.data(), count}; }
};

/// What a decision reads beside the view. Nothing of it is changed.
struct Surroundings {
  const View& view;
  const LoadTable& loads;
  const Penalties& penalties;
  const CacheIndex& cache;
};

/// Decides. No allocation, no lock; time linear in the candidates, as long as one of a few dozen draws is usable (when
/// nearly all engines of a class are at their limit: in the class, up to most_searched). The same arguments and generator give the same
/// decision, bit for bit.
void decide(const Surroundings& around, const Ask& ask, const Tried& tried, Instant now, Rng& rng,
            Decision& out);

/// The same from the recalled surroundings of a past decision.
struct Recalled;
void decide(const Recalled& around, const Ask& ask, const Tried& tried, Instant now, Rng& rng, Decision& out);

/// The way to this engine and back: its time, and what leaving the region costs by the policy.
double way_there(const EngineFacts& facts, const Ask& ask);

/// The cost of this request on this engine, from what was believed of it. `planned`: with the plan's price.
CostParts cost_of(const EngineFacts& facts, const policy::Routing& constants, const Ask& ask,
                  const Belief& belief, double matched_tokens, bool planned);
/// Whether its KV memory would stay under the guard.
bool kv_fits(const EngineFacts& facts, const policy::Routing& constants, const Ask& ask, const Belief& belief,
             double matched_tokens);
/// Whether the engine is to get no more from here now: by the policy's cap, by our own limit, or because one more would
/// wait there for a place in the batch. The latter two only if the policy has a queue target.
bool no_room(const Surroundings& around, const Ask& ask, EngineIndex engine, const Belief& belief);
/// The longest part of the prompt that an engine holds, or is to hold by the plan, and who: the former first.
LongestMatch longest_match(const Surroundings& around, const Ask& ask);
/// How many blocks of that match this engine holds, or is to hold.
std::size_t matched_blocks(const Surroundings& around, const Ask& ask, EngineIndex engine,
                           const LongestMatch& longest);
/// What is believed of an engine now.
Belief belief_of(const Surroundings& around, const Ask& ask, EngineIndex engine, Instant now);
Belief belief_of(const Recalled& around, const Ask& ask, EngineIndex engine, Instant now);

}  // namespace signalbox::routing
