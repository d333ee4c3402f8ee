#include "tools/simulate/world/rivals.hpp"

#include <algorithm>
#include <array>

namespace signalbox::simulate {
namespace {

constexpr double sglang_match = 0.3, sglang_ratio = 1.5;
constexpr std::int64_t sglang_apart = 64;
constexpr double llmd_prefix = 3, llmd_queue = 2, llmd_kv = 2;

double used_share(const engine_sim::Load& load) {
  return static_cast<double>(load.kv_used_blocks) / std::max(1.0, static_cast<double>(load.kv_blocks));
}

}  // namespace

Rivals::Rivals(RoutingRule rule, std::size_t engines, EngineAt engine, std::uint64_t seed)
    : rule_(rule), engines_(engines), engine_(std::move(engine)), rng_(seed), waiting_tokens_(engines) {}

void Rivals::know(std::size_t router) {
  while (own_.size() <= router) {
    own_.emplace_back(engines_);
    routing::CacheIndex& record = records_.emplace_back(most_record_blocks);
    record.resize(engines_, false);
    for (std::size_t e = 0; e < engines_; ++e)
      record.set_depth(EngineIndex(e), most_record_blocks / engines_);
  }
}

double Rivals::uncached(EngineIndex engine, const Question& question) const {
  const auto cached = engine_(engine).machine().cached_prefix_tokens(question.engine_blocks);
  return std::max(1.0, question.prompt_tokens - cached);
}

EngineIndex Rivals::least(std::span<const EngineIndex> of, const std::function<double(EngineIndex)>& cost) {
  EngineIndex best;
  double least = 0;
  std::uint64_t equals = 0;
  for (const EngineIndex e : of) {
    const double here = cost(e);
    if (equals > 0 && here > least) continue;
    equals = equals > 0 && here == least ? equals + 1 : 1;
    if (equals > 1 && rng_.below(equals) != 0) continue;
    least = here;
    best = e;
  }
  return best;
}

EngineIndex Rivals::fewest(std::size_t router, std::span<const EngineIndex> of) {
  return least(of, [&](EngineIndex e) { return static_cast<double>(own_[router][e.at()]); });
}

EngineIndex Rivals::two_choices(std::size_t router, std::span<const EngineIndex> of) {
  if (of.size() < 2) return of.front();
  const std::size_t first = rng_.below(of.size());
  const std::size_t second = (first + 1 + rng_.below(of.size() - 1)) % of.size();
  const std::array two{of[first], of[second]};
  return fewest(router, two);
}

EngineIndex Rivals::by_record(std::size_t router, const Question& question) {
  const auto& own = own_[router];
  const auto load = [&](EngineIndex e) { return own[e.at()]; };
  const auto [low, high] = std::ranges::minmax(question.engines, {}, load);
  if (load(high) - load(low) > sglang_apart &&
      static_cast<double>(load(high)) > sglang_ratio * static_cast<double>(load(low)))
    return fewest(router, question.engines);
  const routing::CacheIndex& record = records_[router];
  const auto matched = [&](EngineIndex e) {
    return static_cast<double>(record.matched(e, question.prompt_blocks));
  };
  const EngineIndex longest = least(question.engines, [&](EngineIndex e) { return -matched(e); });
  if (matched(longest) > sglang_match * static_cast<double>(question.prompt_blocks.size())) return longest;
  return least(question.engines, [&](EngineIndex e) { return static_cast<double>(record.blocks_of(e)); });
}

EngineIndex Rivals::choose(std::size_t router, const Question& question) {
  know(router);
  const auto load = [&](EngineIndex e) { return engine_(e).machine().load(); };
  switch (rule_) {
    case RoutingRule::p2c: return two_choices(router, question.engines);
    case RoutingRule::sglang: return by_record(router, question);
    case RoutingRule::llmd: {
      const auto queue = [&](EngineIndex e) { return static_cast<double>(load(e).waiting); };
      const auto [low, high] = std::ranges::minmax(question.engines, {}, queue);
      const double shortest = queue(low), most = queue(high);
      return least(question.engines, [&](EngineIndex e) {
        const double free_queue = most > shortest ? (most - queue(e)) / (most - shortest) : 1.0;
        const double match = 1 - uncached(e, question) / std::max(1.0, question.prompt_tokens);
        return -(llmd_prefix * match + llmd_queue * free_queue + llmd_kv * (1 - used_share(load(e))));
      });
    }
    case RoutingRule::dynamo:
    case RoutingRule::dynamo_4: {
      const double overlap = rule_ == RoutingRule::dynamo ? 1.0 : 4.0;
      return least(question.engines, [&](EngineIndex e) {
        const double block = engine_(e).machine().options().block_tokens, fresh = uncached(e, question);
        return (overlap * (waiting_tokens_[e.at()] + fresh) + fresh) / block +
               static_cast<double>(load(e).kv_used_blocks);
      });
    }
    case RoutingRule::signalbox:  // not a rival's
    case RoutingRule::least_request: break;
  }
  return fewest(router, question.engines);
}

double Rivals::sent(std::size_t router, EngineIndex engine, const Question& question) {
  const double fresh = uncached(engine, question);
  ++own_[router][engine.at()];
  waiting_tokens_[engine.at()] += fresh;
  if (rule_ == RoutingRule::sglang) records_[router].sent(engine, question.prompt_blocks);
  return fresh;
}

}  // namespace signalbox::simulate
