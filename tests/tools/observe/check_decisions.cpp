// Decides every decision of a recording again from its recorded inputs: the router's rule must give the same candidates
// and choice bit for bit, and the slow evaluator must find nothing wrong with them. Prints counts as JSON.
#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "actors/cluster_router/routing/past_decision.hpp"
#include "cluster-config/policy/compile.hpp"
#include "tests/actors/cluster_router/routing/slow_evaluator.hpp"
#include "tools/recording/reader.hpp"

using namespace signalbox;

namespace {

using routing::test::RawAsk;
using routing::test::RawWorld;

/// What was said before a decision.
struct Said {
  std::map<Digest, std::shared_ptr<const policy::CompiledPolicy>> policies;
  std::map<Digest, schema::FleetTable> tables;
  std::map<std::pair<ClusterName, SnapshotVersion>, schema::RoutingSnapshot> snapshots;

  void on(const schema::Message& message) {
    if (const auto* policy = std::get_if<schema::Policy>(&message)) {
      auto compiled = policy::compile_text(policy->text, "recorded policy");
      if (compiled)
        policies[policy->hash] = std::make_shared<const policy::CompiledPolicy>(*std::move(compiled));
    } else if (const auto* table = std::get_if<schema::FleetTable>(&message)) {
      tables[table->content] = *table;
    } else if (const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&message)) {
      snapshots[{snapshot->cluster, snapshot->version}] = *snapshot;
    }
  }
};

/// The evaluator takes the first cluster for the one where requests enter.
void put_first(schema::FleetTable& table, const ClusterName& cluster) {
  std::size_t at = 0;
  while (at < table.clusters.size() && table.clusters[at].name != cluster) ++at;
  if (at == table.clusters.size()) return;
  const auto moved = [&](ClusterIndex& index) {
    if (index.at() == at)
      index = ClusterIndex(0u);
    else if (index.at() == 0)
      index = ClusterIndex(at);
  };
  std::swap(table.clusters[0], table.clusters[at]);
  for (auto& engine : table.engines) moved(engine.cluster);
  for (auto& link : table.links) moved(link.from), moved(link.to);
}

/// A decision's inputs as the evaluator wants its world.
class Adapted {
 public:
  Adapted(const schema::DecisionInputs& inputs, const Said& said)
      : inputs_(inputs), now_(instant_at(inputs.decided_at)) {
    fleet_.policy = *said.policies.at(inputs.policy);
    fleet_.table = said.tables.at(inputs.table);
    put_first(fleet_.table, inputs.cluster);
    fleet_.routers = inputs.routers;
    fleet_.as_of = now_;
    const auto snapshot = said.snapshots.find({inputs.cluster, inputs.snapshot});
    if (inputs.plan_in_force && snapshot != said.snapshots.end()) {
      fleet_.snapshot = snapshot->second;
      for (auto& price : fleet_.snapshot->prices) price.slowness = 1;  // it is in the curves below
    }
    const std::size_t engines = fleet_.table.engines.size();
    fleet_.heard.resize(engines), fleet_.signals.resize(engines), fleet_.verdicts.resize(engines);
    world_.fleet = &fleet_;
    world_.caches.resize(engines);
    for (std::size_t e = 0; e < engines; ++e) fleet_.verdict(EngineIndex(e), HealthState::gone);
    std::size_t longest = 0;
    for (const auto& row : inputs.engines)
      take(row), longest = std::max<std::size_t>(longest, row.matched_blocks);
    // The longest part may be held by an engine that gets nothing.
    if (longest < inputs.longest_blocks)
      for (std::size_t e = 0; e < engines; ++e)
        if (!is_row(e)) hold(e, inputs.longest_blocks);
    make_ask();
    // The index names the latest few engines that hold a part, whatever model they serve; rows are of one class.
    for (const auto& row : inputs.engines)
      if (row.holder == 0 && row.matched_blocks > 0 && row.matched_blocks == inputs.longest_blocks)
        ask_.unnamed.insert(row.engine.at());
  }

  bool leaves_holders_out() const { return !ask_.unnamed.empty(); }
  std::string disagreement(const routing::Decision& decision) const {
    return routing::test::disagreement(world_, ask_, now_, decision);
  }

 private:
  bool is_row(std::size_t e) const {
    return std::any_of(inputs_.engines.begin(), inputs_.engines.end(),
                       [&](const auto& row) { return row.engine.at() == e; });
  }
  void hold(std::size_t e, std::size_t blocks) {
    for (std::size_t i = 1; i <= blocks; ++i) world_.caches[e].insert(i);
  }

  void take(const schema::InputRow& row) {
    const std::size_t e = row.engine.at();
    auto& engine = fleet_.table.engines[e];
    engine.step_s = row.step_s, engine.per_sequence_s = row.per_sequence_s;
    engine.per_context_token_s = row.per_context_token_s,
    engine.per_prefill_token_s = row.per_prefill_token_s;
    engine.max_batch = row.max_batch, engine.kv_tokens = row.kv_tokens;
    if (row.eligible) fleet_.verdict(row.engine, HealthState::ready, row.spread_weight);
    hold(e, row.matched_blocks);
    const bool read = row.described_at >= Duration::zero();
    const Instant then = read ? instant_at(row.described_at) : never_yet;
    auto& signal = fleet_.signals[e];
    signal.slowness = 1, signal.slowness_samples = 1;
    if (row.requests >= 0) signal.running = row.requests - std::max(0.0, row.waiting);
    if (row.waiting >= 0) signal.waiting = row.waiting;
    if (row.kv_used >= 0 && row.kv_tokens > 0) signal.kv_usage = row.kv_used / row.kv_tokens;
    if (read) fleet_.heard[e].signal = &signal, fleet_.heard[e].signal_at = then;
    const auto of = [](std::uint64_t a, std::uint64_t b) {
      return static_cast<double>(a) - static_cast<double>(b);
    };
    if (read)
      world_.moves.push_back(
          {then, e, of(row.then_requests, 0), of(row.then_prefill_tokens, 0), of(row.then_kv_tokens, 0)});
    world_.moves.push_back({now_, e, of(row.own_requests, read ? row.then_requests : 0),
                            of(row.own_prefill_tokens, read ? row.then_prefill_tokens : 0),
                            of(row.own_kv_tokens, read ? row.then_kv_tokens : 0)});
    if (row.tried) ask_.tried.insert(e);
  }

  void make_ask() {
    ask_.request_class = inputs_.request_class.at();
    ask_.criticality = inputs_.criticality;
    ask_.prompt = inputs_.prompt_tokens, ask_.output = inputs_.output_tokens;
    ask_.context = inputs_.context_tokens, ask_.mean_uncached = inputs_.uncached_tokens;
    ask_.block = inputs_.block_tokens;
    for (std::uint64_t i = 1; i <= inputs_.blocks; ++i) ask_.blocks.push_back(i);
    if (inputs_.home.valid()) ask_.home = inputs_.home.at();
    if (inputs_.pinned.valid()) ask_.pinned = inputs_.pinned.at();
  }

  const schema::DecisionInputs& inputs_;
  Instant now_;
  routing::test::Fleet fleet_;
  RawWorld world_;
  RawAsk ask_;
};

/// Empty if both are the same to the last bit.
std::string difference(const std::vector<schema::CandidateRow>& recorded,
                       const std::vector<schema::CandidateRow>& again) {
  if (recorded.size() != again.size())
    return fmt::format("{} candidates, again {}", recorded.size(), again.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    std::string out;
    schema::for_each_field<schema::CandidateRow>([&](const auto& f) {
      if (!(recorded[i].*f.place == again[i].*f.place))
        out += fmt::format("{} of candidate {} differs; ", f.name, i);
    });
    if (!out.empty()) return out;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto reader = argc == 2 ? recording::Reader::open(argv[1]) : invalid("usage: check_decisions RECORDING");
  if (!reader) {
    fmt::print(stderr, "{}\n", reader.error().text());
    return 2;
  }
  Said said;
  std::vector<schema::DecisionInputs> all;
  while (const auto message = reader->next()) {
    said.on(message->delivery->message);
    if (const auto* inputs = std::get_if<schema::DecisionInputs>(&message->delivery->message))
      all.push_back(*inputs);
  }
  std::size_t same = 0, right = 0, holders = 0, crowded = 0, retries = 0;
  for (const auto& inputs : all) {
    const auto policy = said.policies.find(inputs.policy);
    if (policy == said.policies.end()) continue;
    const auto past = routing::PastDecision::recall(inputs, policy->second);
    if (!past) {
      fmt::print(stderr, "{}: {}\n", inputs.decision, past.error().text());
      continue;
    }
    const routing::Decision again = past->decide();
    const std::string other =
        inputs.chosen == again.engine ? difference(inputs.candidates, past->rows(again)) : "another choice";
    const Adapted adapted(inputs, said);
    const std::string wrong = adapted.disagreement(again);
    same += other.empty() ? 1 : 0;
    right += wrong.empty() ? 1 : 0;
    holders += inputs.longest_blocks > 0 ? 1 : 0;
    crowded += adapted.leaves_holders_out() ? 1 : 0;
    retries += inputs.attempt > 0 ? 1 : 0;
    if (!other.empty()) fmt::print(stderr, "{}: {}\n", inputs.decision, other);
    if (!wrong.empty()) fmt::print(stderr, "{}: the evaluator says: {}\n", inputs.decision, wrong);
  }
  fmt::print(
      "{{\"decisions\": {}, \"same\": {}, \"right\": {}, \"with_cached_prefix\": {}, "
      "\"with_unnamed_holders\": {}, "
      "\"retries\": {}}}\n",
      all.size(), same, right, holders, crowded, retries);
  return same == all.size() && right == all.size() ? 0 : 1;
}
