#include "actors/cluster_router/routing/decide.hpp"

#include <algorithm>
#include <cmath>

#include "actors/cluster_router/routing/recalled.hpp"
#include "actors/kit/shape/egress.hpp"

namespace signalbox::routing {

using schema::CandidateFate;

namespace {

/// Tokens of the prompt that the engine must prefill.
double uncached(const Ask& ask, double matched_tokens) {
  return std::max(0.0, static_cast<double>(ask.prompt_tokens) - matched_tokens);
}

inline double way_to(const EngineFacts& facts, const Ask& ask) {
  return facts.network_s +
         facts.egress_s_per_byte * kit::bytes_on_the_way(static_cast<double>(ask.prompt_tokens),
                                                         static_cast<double>(ask.output_tokens));
}

inline bool fits(const EngineFacts& facts, const policy::Routing& constants, const Ask& ask,
                 const Belief& belief, double matched_tokens) {
  if (!(facts.kv_tokens > 0)) return true;
  const double wanted = static_cast<double>(belief.kv_tokens) + uncached(ask, matched_tokens) +
                        static_cast<double>(ask.output_tokens);
  return wanted <= constants.kv_guard * facts.kv_tokens;
}

/// Costs this close, relative to each other, are the same cost: their order would be noise of the arithmetic.
constexpr double tie = 1e-9;
/// Draws that may be refused before the whole class is searched, per draw wanted.
constexpr std::size_t patience = 8;

/// What is believed of an engine now, from the loads of here or from recalled ones.
template <class Around>
inline Belief believed(const Around& around, const Ask& ask, EngineIndex engine, Instant now) {
  const EngineFacts& facts = around.view.at(engine);
  const policy::CompiledPolicy& policy = *around.view.policy;
  const bool fresh = facts.described_at != never_yet && now - facts.described_at <= policy.stale.signal_hard;
  return believe(facts, around.loads.own(engine), around.loads.own_at_reading(engine),
                 around.loads.elsewhere(engine), fresh,
                 {static_cast<double>(ask.uncached_tokens), static_cast<double>(ask.context_tokens)},
                 around.view.routers - 1.0, policy.routing.xi);
}

template <class Around>
inline bool is_full(const Around& around, const Ask& ask, EngineIndex engine, const Belief& belief) {
  const EngineFacts& facts = around.view.at(engine);
  if (around.loads.full(engine, facts.in_flight_cap)) return true;
  if (!(facts.max_batch > 0) || around.view.policy->queue.target <= Duration::zero()) return false;
  const double batches = full_batches[static_cast<std::size_t>(ask.criticality)];
  return static_cast<double>(belief.requests) >= std::floor(batches * facts.max_batch);
}

/// What the plan means an engine to hold of the prompt, in blocks.
std::size_t placed_blocks(const Ask& ask, EngineIndex engine) {
  if (!ask.placed.contains(engine)) return 0;
  return std::min(ask.blocks.size(),
                  static_cast<std::size_t>(std::lround(ask.placed.tokens / ask.block_tokens)));
}

/// A recalled cache answered with what the plan meant as well.
LongestMatch longest_of(const Recalled& around, const Ask& ask) { return around.cache.longest(ask.blocks); }
std::size_t matched_of(const Recalled& around, const Ask& ask, EngineIndex engine,
                       const LongestMatch& longest) {
  return around.cache.matched(engine, ask.blocks.first(longest.blocks));
}
LongestMatch longest_of(const Surroundings& around, const Ask& ask) { return longest_match(around, ask); }
std::size_t matched_of(const Surroundings& around, const Ask& ask, EngineIndex engine,
                       const LongestMatch& longest) {
  return matched_blocks(around, ask, engine, longest);
}

template <class Around>
class Chooser {
 public:
  Chooser(const Around& around, const Ask& ask, const Tried& tried, Instant now, Rng& rng, Decision& out)
      : around_(around),
        view_(around.view),
        constants_(view_.policy->routing),
        row_(view_.at(ask.request_class)),
        ask_(ask),
        tried_(tried),
        now_(now),
        rng_(rng),
        out_(out) {}

  void run() {
    out_.count = 0;
    out_.engine = EngineIndex{};
    out_.sticky = false;
    const bool planned = view_.plan_in_force(now_);
    out_.planned = planned && !row_.planned.empty();
    if (row_.engines.empty() && !ask_.pinned.valid()) {
      out_.outcome = Outcome::none_eligible;
      return;
    }
    if (ask_.pinned.valid())
      offer_pinned();
    else
      gather();
    if (usable_ == 0) return;
    choose(planned);
  }

 private:
  void gather() {
    if (!ask_.blocks.empty()) longest_ = longest_of(around_, ask_);
    for (const EngineIndex engine : longest_.holders) offer(engine, true);
    if (ask_.home.valid()) offer(ask_.home, false);
    draw_all();
    if (usable_ == 0) search_class();
  }

  /// An old plan still knows who is near and strong, but not who came back since: half of the draws look past it.
  void draw_all() {
    const std::size_t wanted = std::min<std::size_t>(constants_.draws, max_draws);
    if (!out_.planned) return draw(row_.spread, wanted);
    const std::size_t past_it = view_.plan_fresh(now_) ? 0 : wanted / 2;
    draw(row_.planned, wanted - past_it);
    draw(row_.spread, past_it);
  }

  void draw(const AliasTable& table, std::size_t wanted) {
    if (table.empty()) return;
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < wanted * patience && accepted < wanted; ++i) {
      const Share share = table.draw(rng_);
      Candidate* candidate = find(share.engine);
      if (candidate == nullptr) candidate = add(share.engine);
      if (candidate == nullptr) return;
      if (candidate->draws == 0) candidate->weight = static_cast<float>(share.weight);
      if (!accept(*candidate)) continue;
      ++accepted;
      ++candidate->draws;
    }
  }

  /// A candidate by what it has, not by its weight.
  void offer(EngineIndex engine, bool holder) {
    if (!row_.eligible.contains(engine)) return;
    Candidate* candidate = find(engine);
    if (candidate == nullptr) candidate = add(engine);
    if (candidate == nullptr) return;
    candidate->holder |= holder;
    accept(*candidate);
  }

  /// The engine that keeps this request's state serves it even while it is drained.
  void offer_pinned() {
    const HealthState state = view_.at(ask_.pinned).state;
    if (!row_.allowed.contains(ask_.pinned) || state == HealthState::gone) {
      out_.outcome = Outcome::none_eligible;
      return;
    }
    longest_ = longest_of(around_, ask_);
    Candidate* candidate = add(ask_.pinned);
    candidate->penalty = 1;
    if (candidate->fate == CandidateFate::penalised) use(*candidate);
    if (usable_ == 0)
      out_.outcome = candidate->fate == CandidateFate::tried ? Outcome::none_left : Outcome::all_at_limit;
  }

  /// Draws found nobody: everybody who is eligible, from a random place on, as many as would be drawn.
  void search_class() {
    const std::size_t wanted = std::min<std::size_t>(constants_.draws, max_draws);
    const std::size_t start = rng_.below(row_.engines.size());
    const std::size_t looked_at = std::min(row_.engines.size(), most_searched);
    bool limited = looked_at < row_.engines.size();  // the others are not known to have been tried
    out_.count = std::min<std::uint8_t>(out_.count, max_candidates - max_draws);
    for (std::size_t i = 0; i < looked_at && usable_ < wanted; ++i) {
      const EngineIndex engine = row_.engines[(start + i) % row_.engines.size()];
      const Belief belief = believed(around_, ask_, engine, now_);
      const CandidateFate bar = barred(engine, belief);
      limited |= bar == CandidateFate::at_limit;
      if (bar != CandidateFate::penalised) continue;
      Candidate* candidate = find(engine);
      if (candidate == nullptr) candidate = add(engine);
      use(*candidate);
    }
    if (usable_ == 0) out_.outcome = limited ? Outcome::all_at_limit : Outcome::none_left;
  }

  /// What bars an eligible engine; `penalised` stands for "nothing but perhaps its penalty".
  CandidateFate barred(EngineIndex engine, const Belief& belief) const {
    if (tried_.contains(engine)) return CandidateFate::tried;
    return is_full(around_, ask_, engine, belief) ? CandidateFate::at_limit : CandidateFate::penalised;
  }

  bool accept(Candidate& candidate) {
    if (candidate.fate == CandidateFate::dearer) return true;
    if (candidate.fate != CandidateFate::penalised) return false;
    if (candidate.penalty < 1.0f && rng_.uniform() >= static_cast<double>(candidate.penalty)) return false;
    use(candidate);
    return true;
  }

  void use(Candidate& candidate) {
    candidate.fate = CandidateFate::dearer;
    ++usable_;
  }

  Candidate* find(EngineIndex engine) {
    for (std::size_t i = 0; i < out_.count; ++i)
      if (out_.candidates[i].engine == engine) return &out_.candidates[i];
    return nullptr;
  }

  Candidate* add(EngineIndex engine) {
    if (out_.count == max_candidates) return nullptr;
    Candidate& candidate = out_.candidates[out_.count++];
    candidate.engine = engine;
    candidate.belief = believed(around_, ask_, engine, now_);
    candidate.fate = barred(engine, candidate.belief);
    candidate.draws = 0;
    candidate.holder = false;
    candidate.weight = 0;
    candidate.penalty = static_cast<float>(around_.penalties.multiplier(engine, now_));
    candidate.matched_tokens = 0;
    candidate.cost = {};
    return &candidate;
  }

  void choose(bool planned) {
    bool any_fits = false;
    for (std::size_t i = 0; i < out_.count; ++i) {
      Candidate& candidate = out_.candidates[i];
      if (candidate.fate != CandidateFate::dearer) continue;
      estimate(candidate, planned);
      any_fits |= candidate.fate == CandidateFate::dearer;
    }
    // The guard yields when nobody fits: broken affinity would cost more than the wait for memory.
    if (!any_fits)
      for (std::size_t i = 0; i < out_.count; ++i)
        if (out_.candidates[i].fate == CandidateFate::kv_full)
          out_.candidates[i].fate = CandidateFate::dearer;

    pick_least();
    keep_session();
    out_.candidates[out_.chosen].fate = CandidateFate::chosen;
    out_.engine = out_.candidates[out_.chosen].engine;
    out_.outcome = Outcome::chosen;
  }

  void estimate(Candidate& candidate, bool planned) {
    const EngineFacts& facts = view_.at(candidate.engine);
    std::size_t blocks = 0;
    if (longest_.blocks > 0) blocks = matched_of(around_, ask_, candidate.engine, longest_);
    candidate.matched_tokens = std::min(ask_.prompt_tokens, static_cast<float>(blocks) * ask_.block_tokens);
    const double matched = static_cast<double>(candidate.matched_tokens);
    candidate.cost = cost_of(facts, constants_, ask_, candidate.belief, matched, planned);
    if (!fits(facts, constants_, ask_, candidate.belief, matched)) candidate.fate = CandidateFate::kv_full;
  }

  void pick_least() {
    double least = 0;
    std::uint64_t equals = 0;
    for (std::size_t i = 0; i < out_.count; ++i) {
      if (out_.candidates[i].fate != CandidateFate::dearer) continue;
      const double total = out_.candidates[i].cost.total();
      if (equals > 0 && total > least + tie * least) continue;
      equals = equals > 0 && total >= least - tie * least ? equals + 1 : 1;
      if (equals > 1 && rng_.below(equals) != 0) continue;
      least = total;
      out_.chosen = static_cast<std::uint8_t>(i);
    }
  }

  void keep_session() {
    if (!ask_.home.valid()) return;
    for (std::size_t i = 0; i < out_.count; ++i) {
      const Candidate& home = out_.candidates[i];
      if (home.engine != ask_.home || home.fate != CandidateFate::dearer || i == out_.chosen) continue;
      if (out_.candidates[out_.chosen].cost.total() < session_slack * home.cost.total()) return;
      out_.chosen = static_cast<std::uint8_t>(i);
      out_.sticky = true;
    }
  }

  const Around& around_;
  const View& view_;
  const policy::Routing& constants_;
  const ClassTable& row_;
  const Ask& ask_;
  const Tried& tried_;
  const Instant now_;
  Rng& rng_;
  Decision& out_;
  LongestMatch longest_;
  std::size_t usable_ = 0;
};

}  // namespace

void decide(const Surroundings& around, const Ask& ask, const Tried& tried, Instant now, Rng& rng,
            Decision& out) {
  Chooser(around, ask, tried, now, rng, out).run();
}

void decide(const Recalled& around, const Ask& ask, const Tried& tried, Instant now, Rng& rng,
            Decision& out) {
  Chooser(around, ask, tried, now, rng, out).run();
}

LongestMatch longest_match(const Surroundings& around, const Ask& ask) {
  LongestMatch out = around.cache.longest(ask.blocks);
  for (const EngineIndex engine : ask.placed.engines) {
    out.blocks = std::max(out.blocks, placed_blocks(ask, engine));
    if (!out.holders.contains(engine)) out.holders.push(engine);
  }
  return out;
}

std::size_t matched_blocks(const Surroundings& around, const Ask& ask, EngineIndex engine,
                           const LongestMatch& longest) {
  if (ask.placed.engines.empty() && longest.holders.contains(engine)) return longest.blocks;
  return std::max(around.cache.matched(engine, ask.blocks.first(longest.blocks)), placed_blocks(ask, engine));
}

Belief belief_of(const Surroundings& around, const Ask& ask, EngineIndex engine, Instant now) {
  return believed(around, ask, engine, now);
}
Belief belief_of(const Recalled& around, const Ask& ask, EngineIndex engine, Instant now) {
  return believed(around, ask, engine, now);
}

bool no_room(const Surroundings& around, const Ask& ask, EngineIndex engine, const Belief& belief) {
  return is_full(around, ask, engine, belief);
}

double way_there(const EngineFacts& facts, const Ask& ask) { return way_to(facts, ask); }

CostParts cost_of(const EngineFacts& facts, const policy::Routing& constants, const Ask& ask,
                  const Belief& belief, double matched_tokens, bool planned) {
  const double output = static_cast<double>(ask.output_tokens);
  const double fresh = uncached(ask, matched_tokens);
  const double requests = static_cast<double>(belief.requests);
  const double context =
      static_cast<double>(ask.prompt_tokens) + 0.5 * output;  // of this one while it decodes
  const double batch = facts.max_batch > 0 ? std::min(requests + 1, facts.max_batch) : requests + 1;
  double held = static_cast<double>(belief.kv_tokens) + context;
  if (facts.kv_tokens > 0) held = std::min(held, facts.kv_tokens);
  const double step = facts.a + batch * facts.b;
  const double decode =
      output * (step + facts.k * held) + batch * facts.c * static_cast<double>(ask.uncached_tokens);
  const double work = facts.c * fresh + output * (facts.b + facts.k * context);
  const double queued = facts.c * static_cast<double>(belief.prefill_tokens);
  const double usual = output * (step + batch * facts.k * static_cast<double>(ask.context_tokens));
  const double delayed = requests + requests * queued / usual;

  CostParts cost;
  cost.network = way_to(facts, ask);
  cost.queue = constants.tw * queued;
  if (facts.kv_tokens > 0) {
    const double wanted = static_cast<double>(belief.kv_tokens) + fresh + output;
    cost.queue += std::max(0.0, wanted / facts.kv_tokens - 1.0) * decode;
  }
  cost.prefill = constants.tw * facts.c * fresh;
  cost.decode = decode;
  const bool priced = planned && !std::isnan(facts.plan_price);
  cost.price = priced ? constants.eta * 0.5 * (delayed + facts.plan_price) * work
                      : constants.eta_local * delayed * work;
  return cost;
}

bool kv_fits(const EngineFacts& facts, const policy::Routing& constants, const Ask& ask, const Belief& belief,
             double matched_tokens) {
  return fits(facts, constants, ask, belief, matched_tokens);
}

}  // namespace signalbox::routing
