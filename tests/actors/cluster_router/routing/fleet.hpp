// Small fleets for tests: a policy, a table, a snapshot and what was heard of the engines, put together by hand.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster_router/routing/dispatcher.hpp"
#include "actors/cluster_router/routing/view.hpp"

namespace signalbox::routing::test {

inline Instant at(double seconds) { return instant_at(from_seconds(seconds)); }

/// Engines of one shape, unless a test changes their rows.
class Fleet {
 public:
  Fleet() {
    policy.models.push_back({ModelName("m"), {}});
    table.clusters.push_back({ClusterName("here"), DomainName("r1"), DomainName("z1")});
    table.content = digest_of("table");
    policy.hash = digest_of("policy");
  }

  ModelIndex model(std::string_view name) {
    policy.models.push_back({ModelName(name), {}});
    return ModelIndex(policy.models.size() - 1);
  }
  ClusterIndex cluster(std::string_view name, double rtt_s) {
    table.clusters.push_back({ClusterName(name), DomainName("r2"), DomainName("z2")});
    const ClusterIndex index(table.clusters.size() - 1);
    table.links.push_back({ClusterIndex(0), index, rtt_s});
    return index;
  }
  ClassIndex request_class(std::string_view name, Criticality criticality, ModelIndex of = ModelIndex(0),
                           std::string_view tenant = "") {
    policy::ClassRow row;
    row.name = ClassName(name);
    row.model = of;
    row.tenants = {{std::string(tenant.empty() ? name : tenant), false}};
    row.criticality = criticality;
    policy.classes.push_back(row);
    return ClassIndex(policy.classes.size() - 1);
  }
  EngineIndex engine(std::string_view name, ClusterIndex in = ClusterIndex(0),
                     std::vector<ModelName> models = {ModelName("m")}) {
    schema::EngineRow row;
    row.name = EngineName(name);
    row.cluster = in;
    row.models = std::move(models);
    row.step_s = 0.02;
    row.per_sequence_s = 0.0005;
    row.per_context_token_s = 1e-8;
    row.per_prefill_token_s = 0.0001;
    row.kv_tokens = 200'000;
    row.max_batch = 256;
    table.engines.push_back(row);
    heard.emplace_back();
    signals.emplace_back();
    verdicts.emplace_back();
    return EngineIndex(table.engines.size() - 1);
  }
  Fleet& engines(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) engine("e" + std::to_string(i));
    return *this;
  }
  /// A snapshot that gives this class these weights, by engine.
  void weights(ClassIndex of, const std::vector<double>& by_engine) {
    auto& s = plan();
    for (std::size_t e = 0; e < by_engine.size(); ++e)
      if (by_engine[e] > 0) s.weights.push_back({of, EngineIndex(e), by_engine[e], 0});
  }
  void admit(ClassIndex of, double share) { plan().admits.push_back({of, share, 0, 0, 0}); }
  void price(EngineIndex of, double price, double load, double capacity) {
    plan().prices.push_back({of, price, load, capacity, 1, schema::Binding::none});
  }
  schema::RoutingSnapshot& plan() {
    if (!snapshot) snapshot.emplace();
    snapshot->cluster = table.clusters[0].name;
    snapshot->policy = policy.hash;
    snapshot->table = table.content;
    snapshot->version = {{1, ProcessName("o1")}, 1};
    return *snapshot;
  }
  void verdict(EngineIndex of, HealthState state, double factor = 1.0, std::uint64_t life = 1) {
    auto& v = verdicts[of.at()];
    v.engine = table.engines[of.at()].name;
    v.state = state;
    v.capacity_factor = factor;
    v.incarnation = {life, life};
    heard[of.at()].verdict = &v;
  }
  void signal(EngineIndex of, Instant described_at, double running, double waiting, double kv_usage) {
    auto& s = signals[of.at()];
    s.running = running;
    s.waiting = waiting;
    s.kv_usage = kv_usage;
    heard[of.at()].signal = &s;
    heard[of.at()].signal_at = described_at;
  }

  ViewInputs inputs() {
    policy.index();
    ViewInputs in;
    in.cluster = table.clusters[0].name;
    in.policy = std::make_shared<policy::CompiledPolicy>(policy);
    in.table = std::make_shared<schema::FleetTable>(table);
    if (snapshot) in.snapshot = std::make_shared<schema::RoutingSnapshot>(*snapshot);
    in.as_of = as_of;
    in.engines = heard;
    in.routers = routers;
    in.covered_batches = covered;
    in.sent = sent;
    return in;
  }
  /// Fails loudly when the view is refused.
  std::shared_ptr<const View> view(const View* previous = nullptr) {
    auto built = build_view(inputs(), previous);
    if (!built) throw std::runtime_error(built.error().detail);
    return *built;
  }

  policy::CompiledPolicy policy;
  schema::FleetTable table;
  std::optional<schema::RoutingSnapshot> snapshot;
  Instant as_of = at(0);
  std::vector<EngineInput> heard;
  std::deque<schema::EngineSignal> signals;
  std::deque<schema::HealthVerdict> verdicts;
  std::uint32_t routers = 1;
  std::vector<std::uint64_t> covered;
  std::vector<std::shared_ptr<const SentBatch>> sent;
};

inline RequestFacts request(std::string_view tenant, std::uint64_t prompt_bytes = 4000) {
  RequestFacts facts;
  facts.tenant = tenant;
  facts.model = "m";
  facts.prompt_bytes = prompt_bytes;
  return facts;
}

inline DispatcherOptions options(std::uint64_t seed = 1) {
  DispatcherOptions o;
  o.cluster = ClusterName("here");
  o.router = ProcessName("r1");
  o.incarnation = {1, 7};
  o.seed = seed;
  return o;
}

template <class T>
const T& as(const Verdict& verdict) {
  return std::get<T>(verdict);
}

}  // namespace signalbox::routing::test
