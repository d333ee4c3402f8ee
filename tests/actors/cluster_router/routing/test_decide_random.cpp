// decide() against the slow evaluator, on random worlds.
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "actors/cluster_router/routing/past_decision.hpp"
#include "messages/base/rng.hpp"
#include "messages/codec/codec.hpp"
#include "tests/actors/cluster_router/routing/slow_evaluator.hpp"
#include "tests/support/sizes.hpp"

namespace signalbox::routing::test {

namespace {

/// One random fleet with its history; moves are at least 100 ms apart, since the load table remembers no finer.
class RandomWorld {
 public:
  explicit RandomWorld(Rng& rng) : rng_(rng), cache_(100'000) {
    make_fleet();
    make_plan();
    hear();
    raw_.fleet = &fleet_;
    view_ = fleet_.view();
    std::vector<EngineIndex> fresh(engines());
    loads_.remap(fresh);
    penalties_.remap(fresh);
    penalties_.configure(fleet_.policy.penalty);
    cache_.resize(engines(), false);
    for (std::size_t e = 0; e < engines(); ++e) cache_.set_depth(EngineIndex(e), 10'000);
    raw_.caches.resize(engines());
    fill_caches();
    live();
  }
  ~RandomWorld() {
    for (Hold& hold : holds_) loads_.release(hold, now_);
  }

  std::string check_one() {
    const RawAsk raw = make_ask();
    Ask ask;
    ask.request_class = ClassIndex(raw.request_class);
    ask.criticality = raw.criticality;
    ask.prompt_tokens = static_cast<float>(raw.prompt);
    ask.output_tokens = static_cast<float>(raw.output);
    ask.context_tokens = static_cast<float>(raw.context);
    ask.uncached_tokens = static_cast<float>(raw.mean_uncached);
    ask.block_tokens = static_cast<float>(raw.block);
    ask.blocks = raw.blocks;
    if (raw.home) ask.home = EngineIndex(*raw.home);
    if (raw.pinned) ask.pinned = EngineIndex(*raw.pinned);
    Tried tried;
    for (const std::size_t e : raw.tried) tried.push(EngineIndex(e));

    const std::uint64_t seed = rng_.next();
    const Surroundings around{*view_, loads_, penalties_, cache_};
    Rng first(seed), again(seed);
    Decision decision, replayed;
    decide(around, ask, tried, now_, first, decision);
    decide(around, ask, tried, now_, again, replayed);
    if (auto difference = replay_difference(decision, replayed); !difference.empty()) return difference;
    if (rng_.below(recalled_every) == 0)
      if (auto difference = recalled_difference(around, ask, tried, seed, decision); !difference.empty())
        return difference;
    return disagreement(raw_, raw, now_, decision);
  }

 private:
  std::size_t engines() const { return fleet_.table.engines.size(); }
  double log_uniform(double lo, double hi) { return lo * std::exp(rng_.uniform() * std::log(hi / lo)); }

  static std::string replay_difference(const Decision& a, const Decision& b) {
    if (a.outcome != b.outcome || a.engine != b.engine || a.count != b.count)
      return "a replay decides differently";
    for (std::size_t i = 0; i < a.count; ++i)
      if (std::bit_cast<std::uint64_t>(a.candidates[i].cost.total()) !=
          std::bit_cast<std::uint64_t>(b.candidates[i].cost.total()))
        return "a replay computes another cost";
    return "";
  }

  /// Through the message that carries a decision's inputs, and back: the same to the last bit.
  std::string recalled_difference(const Surroundings& around, const Ask& ask, const Tried& tried,
                                  std::uint64_t seed, const Decision& decision) const {
    schema::DecisionInputs inputs = inputs_of(around, ask, tried, now_, seed, decision);
    if (const auto sound = schema::check(inputs); !sound) return "inputs: " + sound.error().text();
    const auto decoded =
        codec::decode(schema::DecisionInputs::info.kind, codec::encode(schema::Message(inputs)));
    if (!decoded) return "inputs: " + decoded.error().text();
    const auto past = PastDecision::recall(std::get<schema::DecisionInputs>(*decoded), view_->policy);
    if (!past) return "recall: " + past.error().text();
    const Decision recalled = past->decide();
    if (auto difference = replay_difference(decision, recalled); !difference.empty())
      return "recalled: " + difference;
    const auto rows = past->rows(recalled);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& recorded = inputs.candidates[i];
      if (rows[i].fate != recorded.fate || rows[i].penalty != recorded.penalty ||
          rows[i].weight != recorded.weight || rows[i].matched_tokens != recorded.matched_tokens ||
          rows[i].signal_age != recorded.signal_age)
        return "recalled: another candidate";
      if (rows[i].total_s > 0 && past->cost_on(rows[i].engine).total_s != rows[i].total_s)
        return "recalled: another cost on that engine";
    }
    return "";
  }

  void make_fleet() {
    const std::size_t clusters = rng_.below(3);
    for (std::size_t i = 0; i < clusters; ++i)
      fleet_.cluster("c" + std::to_string(i), log_uniform(0.0001, 0.3));
    fleet_.model("other");
    fleet_.policy.zones = {{DomainName("z1"), {DomainName("r1")}}, {DomainName("z2"), {DomainName("r2")}}};
    fleet_.request_class("a", Criticality::standard);
    fleet_.request_class("b", Criticality::critical);
    if (rng_.chance(0.3)) {
      fleet_.policy.classes[1].any_zone = false;
      fleet_.policy.classes[1].zones.set(rng_.below(2));
    }
    const std::size_t n = 1 + rng_.below(12);
    for (std::size_t i = 0; i < n; ++i) {
      const bool other = rng_.chance(0.15);
      fleet_.engine("e" + std::to_string(i), ClusterIndex(rng_.below(clusters + 1)),
                    {ModelName(other ? "other" : "m")});
      auto& row = fleet_.table.engines.back();
      row.step_s = log_uniform(0.005, 0.05);
      row.per_sequence_s = log_uniform(1e-5, 1e-3);
      row.per_context_token_s = rng_.chance(0.5) ? 0 : log_uniform(1e-9, 1e-7);
      row.per_prefill_token_s = log_uniform(1e-5, 1e-3);
      row.kv_tokens = rng_.chance(0.1) ? 0 : log_uniform(5'000, 1e6);
      row.max_batch = rng_.chance(0.1) ? 0 : log_uniform(4, 256);
    }
    auto& policy = fleet_.policy;
    policy.routing.draws = static_cast<std::uint32_t>(1 + rng_.below(8));
    policy.routing.eta = rng_.uniform(0, 3);
    policy.routing.xi = rng_.uniform();
    if (rng_.chance(0.7)) policy.queue.target = 500ms;
    policy.limits.in_flight_cap = static_cast<std::uint32_t>(rng_.chance(0.5) ? 256 : 1 + rng_.below(6));
    fleet_.routers = static_cast<std::uint32_t>(1 + rng_.below(4));
    fleet_.as_of = rng_.chance(0.2) ? at(100) - 61s : at(95);
  }

  void make_plan() {
    if (rng_.chance(0.2)) return;
    fleet_.policy.index();
    for (std::size_t c = 0; c < 2; ++c) {
      if (rng_.chance(0.2)) continue;
      std::vector<double> weights(engines());
      double sum = 0;
      for (std::size_t e = 0; e < engines(); ++e) {
        const auto& engine = fleet_.table.engines[e];
        const auto& cluster = fleet_.table.clusters[engine.cluster.at()];
        const bool may =
            engine.models[0].str() == "m" &&
            fleet_.policy.allows(ClassIndex(c), {"", "", cluster.region.str(), cluster.zone.str()});
        if (may && rng_.chance(0.8)) weights[e] = rng_.uniform();
        sum += weights[e];
      }
      for (double& w : weights) w = sum > 0 ? w / sum : 0;
      fleet_.weights(ClassIndex(c), weights);
      if (rng_.chance(0.3)) {
        schema::Bytes bits((engines() + 7) / 8);
        for (std::size_t e = 0; e < engines(); ++e)
          if (weights[e] > 0) bits[e / 8] = static_cast<std::uint8_t>(bits[e / 8] | 1u << (e % 8));
        fleet_.plan().allowed.push_back({ClassIndex(c), bits});
      }
    }
    fleet_.plan();
    for (std::size_t e = 0; e < engines(); ++e)
      if (rng_.chance(0.8))
        fleet_.price(EngineIndex(e), log_uniform(1, 5'000), rng_.uniform(), rng_.uniform(0, 0.85));
  }

  void hear() {
    constexpr HealthState states[] = {HealthState::ready,    HealthState::ready,   HealthState::degraded,
                                      HealthState::starting, HealthState::suspect, HealthState::draining,
                                      HealthState::gone};
    for (std::size_t e = 0; e < engines(); ++e) {
      if (rng_.chance(0.7)) {
        const HealthState state = states[rng_.below(std::size(states))];
        const bool whole = state == HealthState::ready || state == HealthState::suspect;
        fleet_.verdict(EngineIndex(e), state, whole ? 1.0 : rng_.chance(0.1) ? 0.0 : rng_.uniform());
      }
      if (rng_.chance(0.8)) {
        // 30 ms off the grid of the moves; some too old.
        const double age = rng_.chance(0.15) ? 6.03 : 0.13 + 0.1 * static_cast<double>(rng_.below(15));
        fleet_.signal(EngineIndex(e), at(100 - age), log_uniform(1, 100), log_uniform(0.1, 10),
                      rng_.uniform());
        auto& s = fleet_.signals[e];
        if (rng_.chance(0.1)) s.running.reset();
        if (rng_.chance(0.1)) s.waiting.reset();
        if (rng_.chance(0.1)) s.kv_usage.reset();
        if (rng_.chance(0.5)) s.slowness = log_uniform(0.2, 5), s.slowness_samples = 10;
      }
    }
  }

  /// Conversations: prompts that share heads, sent to random engines.
  void fill_caches() {
    for (int p = 0; p < 4; ++p) {
      std::vector<std::uint64_t> prompt;
      for (std::uint64_t i = 0, n = rng_.below(12); i < n; ++i) prompt.push_back(i < 3 ? 1 + i : rng_.next());
      prompts_.push_back(prompt);
      for (std::uint64_t i = 0, n = rng_.below(4); i < n; ++i) {
        const std::size_t e = rng_.below(engines());
        cache_.sent(EngineIndex(e), prompt);
        raw_.caches[e].insert(prompt.begin(), prompt.end());
      }
    }
  }

  void live() {
    for (double t = 98; t <= 100.01; t += 0.1) {
      now_ = at(t);
      const std::size_t e = rng_.below(engines());
      if (!holds_.empty() && rng_.chance(0.3)) {
        const std::size_t i = rng_.below(holds_.size());
        move(holds_[i].engine().at(), -1, -1.0 * charges_[i].prefill, -1.0 * charges_[i].kv);
        loads_.release(holds_[i], now_);
        holds_[i] = std::move(holds_.back());
        holds_.pop_back();
        charges_[i] = charges_.back();
        charges_.pop_back();
        continue;
      }
      const Charge charge{static_cast<std::uint32_t>(rng_.below(3000)),
                          static_cast<std::uint32_t>(rng_.below(5000))};
      holds_.push_back(loads_.take(EngineIndex(e), charge, now_));
      charges_.push_back(charge);
      move(e, 1, charge.prefill, charge.kv);
    }
    now_ = at(100.05);
    for (std::size_t e = 0; e < engines(); ++e) {
      if (fleet_.heard[e].signal != nullptr) loads_.reading(EngineIndex(e), fleet_.heard[e].signal_at);
      if (rng_.chance(0.2)) penalties_.failure(EngineIndex(e), policy::FailureKind::connect, now_);
    }
  }
  void move(std::size_t e, double requests, double prefill, double kv) {
    raw_.moves.push_back({now_, e, requests, prefill, kv});
  }

  RawAsk make_ask() {
    RawAsk ask;
    ask.request_class = rng_.below(2);
    ask.criticality = rng_.chance(0.5) ? Criticality::critical : Criticality::sheddable;
    // Rounded as the router keeps them.
    const auto rounded = [](double x) { return static_cast<double>(static_cast<float>(x)); };
    ask.prompt = rounded(log_uniform(10, 50'000));
    ask.output = rounded(log_uniform(1, 4'000));
    ask.context = rounded(log_uniform(10, 50'000));
    ask.mean_uncached = rounded(log_uniform(10, 20'000));
    ask.block = 256;
    if (rng_.chance(0.7)) {
      ask.blocks = prompts_[rng_.below(prompts_.size())];
      if (rng_.chance(0.5)) ask.blocks.push_back(rng_.next());
    }
    while (rng_.chance(0.2) && ask.tried.size() < max_attempts) ask.tried.insert(rng_.below(engines()));
    if (rng_.chance(0.2)) ask.home = rng_.below(engines());
    if (rng_.chance(0.05)) ask.pinned = rng_.below(engines());
    return ask;
  }

  static constexpr std::size_t recalled_every = 20;  // it is much slower than deciding
  Rng& rng_;
  Fleet fleet_;
  RawWorld raw_{};
  std::shared_ptr<const View> view_;
  LoadTable loads_;
  Penalties penalties_;
  CacheIndex cache_;
  std::vector<Hold> holds_;
  std::vector<Charge> charges_;
  std::vector<std::vector<std::uint64_t>> prompts_;
  Instant now_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(decide_agrees_with_the_slow_evaluator) {
  constexpr std::uint64_t asks_per_world = 25;
  const std::uint64_t cases = signalbox::tests::size_of_test("decide_agrees_with_the_slow_evaluator");
  for (std::uint64_t world = 0; world < cases / asks_per_world; ++world) {
    Rng rng(world);
    RandomWorld random(rng);
    for (std::uint64_t i = 0; i < asks_per_world; ++i) {
      const std::string wrong = random.check_one();
      BOOST_REQUIRE_MESSAGE(wrong.empty(), "world " << world << ", ask " << i << ": " << wrong);
    }
  }
}

}  // namespace signalbox::routing::test
