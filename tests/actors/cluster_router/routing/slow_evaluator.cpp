#include "tests/actors/cluster_router/routing/slow_evaluator.hpp"

#include <fmt/format.h>

#include <cmath>

namespace signalbox::routing::test {

namespace {

/// Inputs of the router pass through 32-bit floats.
constexpr double tolerance = 2e-5;

/// Parts are compared relative to the whole: the memory part is a small difference of large numbers.
bool close(double a, double b, double whole) { return std::abs(a - b) <= tolerance * whole; }

struct Costs {
  double network, queue, prefill, decode, price;
  double sum() const { return network + queue + prefill + decode + price; }
};

class Rule {
 public:
  Rule(const RawWorld& world, const RawAsk& ask, Instant now)
      : fleet_(*world.fleet), world_(world), ask_(ask), now_(now) {}

  bool plan_is_young() const {
    return fleet_.snapshot.has_value() &&
           to_seconds(now_ - fleet_.as_of) < to_seconds(fleet_.policy.stale.snapshot_degrade);
  }

  bool allowed(std::size_t e) const {
    const auto& row = fleet_.policy.classes[ask_.request_class];
    const auto& engine = fleet_.table.engines[e];
    const auto& model = fleet_.policy.models[row.model.at()].name;
    bool serves = false;
    for (const auto& m : engine.models) serves = serves || m == model;
    const auto& cluster = fleet_.table.clusters[engine.cluster.at()];
    if (!serves || !fleet_.policy.allows(
                       ClassIndex(ask_.request_class),
                       {engine.rack.str(), cluster.name.str(), cluster.region.str(), cluster.zone.str()}))
      return false;
    if (fleet_.snapshot)
      for (const auto& set : fleet_.snapshot->allowed)
        if (set.request_class.at() == ask_.request_class)
          return e / 8 < set.engines.size() && (set.engines[e / 8] & (1u << (e % 8))) != 0;
    return true;
  }

  bool eligible(std::size_t e) const {
    if (!allowed(e)) return false;
    // The panic rule: too few of the allowed engines would do, and suspicion is what bars others.
    int all = 0, good = 0, doubtful = 0;
    for (std::size_t i = 0; i < fleet_.table.engines.size(); ++i) {
      if (!allowed(i)) continue;
      ++all;
      if (healthy(i))
        ++good;
      else if (doubted(i))
        ++doubtful;
    }
    const bool panic = doubtful > 0 && good < fleet_.policy.eject.panic_below * all;
    return healthy(e) || (panic && doubted(e));
  }

  bool at_limit(std::size_t e) const {
    double factor = 1.0;
    if (const auto* v = fleet_.heard[e].verdict) factor = v->capacity_factor;
    const double batch = fleet_.table.engines[e].max_batch;
    double whole = fleet_.policy.limits.in_flight_cap;
    if (factor < 1 && batch > 0 && batch < whole) whole = batch;
    const double cap = std::max(1.0, std::ceil(whole * static_cast<double>(static_cast<float>(factor))));
    return mine(e, now_).requests >= cap || (full(e) > 0 && requests(e) >= full(e));
  }
  /// Whether 32 or 64 bits decide on that.
  bool nearly_full(std::size_t e) const {
    return full(e) > 0 && std::abs(requests(e) - full(e)) <= 1e-4 * full(e);
  }

  /// Leading blocks of the prompt that the engine holds.
  std::size_t held(std::size_t e) const {
    std::size_t n = 0;
    while (n < ask_.blocks.size() && world_.caches[e].count(ask_.blocks[n]) > 0) ++n;
    return n;
  }
  std::size_t longest() const {
    std::size_t best = 0;
    for (std::size_t e = 0; e < fleet_.table.engines.size(); ++e) best = std::max(best, held(e));
    return best;
  }

  double uncached(std::size_t e) const {
    const double matched = std::min(ask_.prompt, static_cast<double>(held(e)) * ask_.block);
    return ask_.prompt - matched;
  }

  Costs cost(std::size_t e) const {
    const auto& r = fleet_.policy.routing;
    const auto& row = fleet_.table.engines[e];
    const double s = slowness(e);
    const double a = row.step_s, b = row.per_sequence_s, k = row.per_context_token_s,
                 c = row.per_prefill_token_s;
    const double O = ask_.output, U = uncached(e), N = requests(e);
    const double n = row.max_batch > 0 ? std::min(N + 1, row.max_batch) : N + 1;
    const double L = ask_.prompt + O / 2;
    const double context = row.kv_tokens > 0 ? std::min(memory(e) + L, row.kv_tokens) : memory(e) + L;
    const double tpot = a + n * b + k * context + n * c * ask_.mean_uncached / O;
    const double W = s * (c * U + O * (b + k * L));
    const double D = N * (1 + c * waiting_tokens(e) / (O * (a + n * (b + k * ask_.context))));
    Costs out{};
    for (const auto& link : fleet_.table.links)
      if (link.from.at() == 0 && link.to == row.cluster) out.network = link.rtt_s;
    const auto& clusters = fleet_.table.clusters;
    if (clusters[row.cluster.at()].region != clusters[0].region)
      out.network += fleet_.policy.objective.weights.egress * 1e-6 * (4 * ask_.prompt + 250 * O);
    out.queue = r.tw * s * c * waiting_tokens(e);
    if (row.kv_tokens > 0) out.queue += s * std::max(0.0, (memory(e) + U + O) / row.kv_tokens - 1) * O * tpot;
    out.prefill = r.tw * s * c * U;
    out.decode = s * O * tpot;
    const auto p = plan_delay(e);
    out.price = plan_is_young() && p ? r.eta * (D + *p) / 2 * W : r.eta_local * D * W;
    return out;
  }

  /// Memory after this request over the guard: above 1 it does not fit.
  double fill(std::size_t e) const {
    const double kv = fleet_.table.engines[e].kv_tokens;
    if (kv <= 0) return 0;
    return (memory(e) + uncached(e) + ask_.output) / kv / fleet_.policy.routing.kv_guard;
  }

  double requests(std::size_t e) const {
    const auto* s = reading(e);
    std::optional<double> said;
    if (s != nullptr && s->running) said = *s->running + (s->waiting ? *s->waiting : 0.0);
    return believed(said, mine(e, now_).requests, mine(e, fleet_.heard[e].signal_at).requests);
  }

 private:
  bool healthy(std::size_t e) const {
    const auto* v = fleet_.heard[e].verdict;
    if (v == nullptr) return true;
    const bool serving = v->state == HealthState::ready || v->state == HealthState::degraded ||
                         v->state == HealthState::starting;
    return serving && v->capacity_factor > 0;
  }
  bool doubted(std::size_t e) const {
    const auto* v = fleet_.heard[e].verdict;
    return v != nullptr && !healthy(e) && v->state != HealthState::gone && v->state != HealthState::draining;
  }

  /// A queue begins at this number of requests; 0: never.
  double full(std::size_t e) const {
    if (to_seconds(fleet_.policy.queue.target) <= 0) return 0;
    const double batches = ask_.criticality == Criticality::critical ? 1.1 : 1.0;
    return std::floor(fleet_.table.engines[e].max_batch * batches);
  }

  Move mine(std::size_t e, Instant when) const {
    Move sum{when, e, 0, 0, 0};
    for (const Move& m : world_.moves) {
      if (m.engine != e || m.when > when) continue;
      sum.requests += m.requests;
      sum.prefill += m.prefill;
      sum.kv += m.kv;
    }
    return sum;
  }

  const schema::EngineSignal* reading(std::size_t e) const {
    const auto& heard = fleet_.heard[e];
    if (heard.signal == nullptr) return nullptr;
    return to_seconds(now_ - heard.signal_at) <= to_seconds(fleet_.policy.stale.signal_hard) ? heard.signal
                                                                                             : nullptr;
  }

  double believed(std::optional<double> said, double now, double then) const {
    const double others = fleet_.routers - 1.0;
    if (!said) return now * (others + 1);
    const double all = std::max(0.0, *said - then) + now + fleet_.policy.routing.xi * others * (now - then);
    return std::max(all, now);  // what this router itself has there is there
  }
  double waiting_tokens(std::size_t e) const {
    const auto* s = reading(e);
    std::optional<double> said;
    if (s != nullptr && s->waiting) said = *s->waiting * ask_.mean_uncached;
    return believed(said, mine(e, now_).prefill, mine(e, fleet_.heard[e].signal_at).prefill);
  }
  double memory(std::size_t e) const {
    const auto* s = reading(e);
    std::optional<double> said;
    const double kv = fleet_.table.engines[e].kv_tokens;
    if (s != nullptr && s->kv_usage && kv > 0)
      said = *s->kv_usage * kv + (s->waiting ? *s->waiting * ask_.context : 0.0);
    const double now = mine(e, now_).kv, then = mine(e, fleet_.heard[e].signal_at).kv;
    const double others = fleet_.routers - 1.0;
    if (!said) return now * (others + 1);
    return std::max(0.0, *said + (now - then) * (1 + fleet_.policy.routing.xi * others));
  }

  double slowness(std::size_t e) const {
    const auto* s = fleet_.heard[e].signal;
    if (s != nullptr && s->slowness_samples > 0) return s->slowness;
    if (fleet_.snapshot)
      for (const auto& p : fleet_.snapshot->prices)
        if (p.engine.at() == e) return p.slowness;
    return 1.0;
  }

  /// p = u * price, of which the rent of a limit that holds is no part; where the batch limit caps u, the excess waits.
  std::optional<double> plan_delay(std::size_t e) const {
    if (!fleet_.snapshot) return std::nullopt;
    std::optional<double> out;
    for (const auto& row : fleet_.snapshot->prices) {
      if (row.engine.at() != e || row.capacity <= 0) continue;
      const double pole = row.capacity / fleet_.policy.limits.load_ceiling;
      const double u = std::min(0.999, row.planned_load / pole);
      const double price = row.congestion > 0 ? std::min(row.price, row.congestion) : row.price;
      const double q = price * (1 - u) * (1 - u);
      const double most = fleet_.table.engines[e].max_batch;
      const double at_most = most > 0 ? most / (most + q) : 1.0;
      if (u <= at_most)
        out = u * price;
      else
        out = at_most * q / ((1 - at_most) * (1 - at_most)) * (1 + 60 * (u - at_most));
    }
    return out;
  }

  const Fleet& fleet_;
  const RawWorld& world_;
  const RawAsk& ask_;
  Instant now_;
};

/// Every row of the decision must be what the rule says of that engine.
std::string check_candidate(const Rule& rule, const RawAsk& ask, const Candidate& c) {
  using schema::CandidateFate;
  const std::size_t e = c.engine.at();
  if (rule.nearly_full(e)) return "";
  const std::string name = fmt::format("engine {} ({})", e, name_of(c.fate));
  const bool compared =
      c.fate == CandidateFate::chosen || c.fate == CandidateFate::dearer || c.fate == CandidateFate::kv_full;
  if (!(ask.pinned == e) && !rule.eligible(e)) return name + " is not eligible";
  if (!rule.allowed(e)) return name + " is not allowed";
  if ((c.fate == CandidateFate::tried) != (ask.tried.count(e) > 0)) return name + ": tried is wrong";
  if (c.fate == CandidateFate::at_limit && !rule.at_limit(e)) return name + " is not at its limit";
  if (!compared) return "";
  if (rule.at_limit(e)) return name + " is at its limit";
  const Costs want = rule.cost(e);
  const double got[] = {c.cost.network, c.cost.queue, c.cost.prefill, c.cost.decode, c.cost.price};
  const double due[] = {want.network, want.queue, want.prefill, want.decode, want.price};
  for (int i = 0; i < 5; ++i)
    if (!close(got[i], due[i], want.sum()))
      return fmt::format("{}: cost part {} is {}, by the rule {}", name, i, got[i], due[i]);
  const double fill = rule.fill(e);
  if (c.fate == CandidateFate::kv_full && fill < 1 - tolerance) return name + " would fit";
  return "";
}

/// Least cost of those whose memory fits, or of all when none does; a session keeps its engine within a factor of two.
std::string check_choice(const Rule& rule, const RawAsk& ask, const Decision& decision) {
  using schema::CandidateFate;
  bool any_fits = false, border = false;
  for (const Candidate& c : decision.considered()) {
    const bool compared = c.fate == CandidateFate::chosen || c.fate == CandidateFate::dearer ||
                          c.fate == CandidateFate::kv_full;
    if (!compared) continue;
    const double fill = rule.fill(c.engine.at());
    any_fits = any_fits || fill <= 1;
    border = border || std::abs(fill - 1) < tolerance;
  }
  if (border) return "";  // rounding decides
  double least = 1e300, home_cost = -1;
  for (const Candidate& c : decision.considered()) {
    if (c.fate != CandidateFate::chosen && c.fate != CandidateFate::dearer &&
        c.fate != CandidateFate::kv_full)
      continue;
    if (any_fits && rule.fill(c.engine.at()) > 1) {
      if (c.fate != CandidateFate::kv_full)
        return fmt::format("engine {} is over the memory guard", c.engine.value);
      continue;
    }
    const double cost = rule.cost(c.engine.at()).sum();
    least = std::min(least, cost);
    if (ask.home == c.engine.at()) home_cost = cost;
  }
  const double chosen = rule.cost(decision.engine.at()).sum();
  const bool is_home = ask.home == decision.engine.at();
  if (home_cost >= 0 && home_cost < least * (2 - 1e-4) && !is_home) return "the session lost its engine";
  if (is_home) return chosen <= least * (2 + 1e-4) ? "" : "the session stayed too long";
  if (chosen > least * (1 + tolerance))
    return fmt::format("engine {} was chosen at {}, another costs {}", decision.engine.value, chosen, least);
  return "";
}

/// Engines that hold the longest known part of the prompt are candidates, the latest four if there are more.
std::string check_holders(const Rule& rule, const RawAsk& ask, const Decision& decision,
                          std::size_t engines) {
  const std::size_t longest = rule.longest();
  if (longest == 0 || ask.pinned) return "";
  std::size_t holders = 0, missing = 0;
  for (std::size_t e = 0; e < engines; ++e) {
    if (rule.held(e) != longest || ask.unnamed.count(e) > 0) continue;
    ++holders;
    bool listed = !rule.eligible(e);
    for (const Candidate& c : decision.considered()) listed = listed || c.engine.at() == e;
    missing += listed ? 0 : 1;
  }
  const std::size_t beyond = holders > max_holders ? holders - max_holders : 0;
  return missing > beyond ? fmt::format("{} engines that hold the prompt were not considered", missing) : "";
}

}  // namespace

std::string disagreement(const RawWorld& world, const RawAsk& ask, Instant now, const Decision& decision) {
  const Rule rule(world, ask, now);
  const std::size_t engines = world.fleet->table.engines.size();
  std::size_t usable = 0, limited = 0, eligible = 0, unsure = 0;
  for (std::size_t e = 0; e < engines; ++e) {
    if (ask.pinned ? ask.pinned != e : !rule.eligible(e)) continue;
    ++eligible;
    if (ask.tried.count(e) > 0) continue;
    if (rule.nearly_full(e)) ++unsure;
    (rule.at_limit(e) ? limited : usable) += 1;
  }
  for (const Candidate& c : decision.considered())
    if (auto wrong = check_candidate(rule, ask, c); !wrong.empty()) return wrong;
  if (decision.outcome == Outcome::chosen) {
    if (auto wrong = check_holders(rule, ask, decision, engines); !wrong.empty()) return wrong;
    return check_choice(rule, ask, decision);
  }
  if (ask.pinned || unsure > 0) return "";  // whether its engine may serve is a table of its own
  if (usable > 0) return fmt::format("nobody was chosen, though {} engines could serve", usable);
  if ((decision.outcome == Outcome::none_eligible) != (eligible == 0)) return "none_eligible is wrong";
  if ((decision.outcome == Outcome::all_at_limit) != (limited > 0)) return "all_at_limit is wrong";
  return "";
}

}  // namespace signalbox::routing::test
