// All that a router routes by, in one immutable value. The actor builds a View whenever something changed and swaps it
// in whole; event loops read it without locks. What is derived per class (who may serve it, tables to draw from) is
// computed here once, so that decide() only looks up.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/routing/alias_table.hpp"
#include "actors/cluster_router/routing/placed.hpp"
#include "cluster-config/policy/compiled.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/result.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/fleet_table.hpp"
#include "messages/schema/health.hpp"
#include "messages/schema/plan.hpp"
#include "messages/schema/signals.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// A set of engines by EngineIndex.
class EngineSet {
 public:
  EngineSet() = default;
  explicit EngineSet(std::size_t engines) : words_((engines + 63) / 64) {}
  void insert(EngineIndex engine) { words_[engine.at() / 64] |= 1ULL << (engine.at() % 64); }
  bool contains(EngineIndex engine) const {
    return engine.at() / 64 < words_.size() && (words_[engine.at() / 64] >> (engine.at() % 64) & 1ULL) != 0;
  }
  bool intersects(const EngineSet& other) const;
  bool subset_of(const EngineSet& other) const;

 private:
  std::vector<std::uint64_t> words_;
};

/// What is known of one engine: its curve, its latest reading, its price. Times are in seconds and already multiplied
/// by its slowness s.
struct alignas(64) EngineFacts {
  double a = 0;          ///< s*a: an empty step
  double b = 0;          ///< s*b: per sequence
  double k = 0;          ///< s*k: per context token
  double c = 0;          ///< s*c: per prefilled token
  double max_batch = 0;  ///< sequences; 0: unknown
  double kv_tokens = 0;  ///< size of its KV memory; 0: unknown
  double network_s = 0;  ///< round trip from this router's cluster
  double plan_price =
      unknown;  ///< p: requests that one more second of work delays, by the plan; NaN: no plan price
  Instant described_at = never_yet;  ///< the time that the reading below describes
  double requests = unknown;         ///< running and waiting there; NaN: it does not say
  double waiting = unknown;          ///< of these, waiting
  double kv_used = unknown;          ///< tokens
  double egress_s_per_byte = 0;  ///< what leaving this router's region costs by the policy; 0: it stays there
  std::uint32_t in_flight_cap = 0;  ///< of this router, after ramping
  float capacity_factor = 1;
  HealthState state = HealthState::ready;
  bool judged = false;       ///< a monitor has spoken; else `ready` is only assumed
  bool curve_known = false;  ///< declared or measured; else a guess
};
static_assert(sizeof(EngineFacts) == 128);

/// What an engine's own events say of its prefix cache.
struct CacheFacts {
  std::uint64_t clears = 0;      ///< times that it was emptied, as its proxy counts them
  double held_tokens = unknown;  ///< of a cache that has begun to drop what it held
  bool told = false;             ///< it publishes events
};

/// What the router needs of one class.
struct ClassTable {
  EngineSet allowed;                 ///< by policy, model and, with a plan, the plan's allowed set
  EngineSet eligible;                ///< of these, those that may get new requests now
  std::vector<EngineIndex> engines;  ///< the eligible ones, ascending
  AliasTable planned;  ///< the plan's weights over the eligible ones; empty: no plan for this class
  AliasTable spread;   ///< without a plan: even, ramped engines less
  double admit = 1;    ///< share of the offered requests that the plan admits
  double uncached_tokens = unknown;  ///< mean prompt tokens that the cache misses, as planned with
  double output_tokens = unknown;    ///< mean output tokens, as planned with
  bool panic = false;                ///< too few ready engines: suspicion is ignored
};

/// The part of a view that changes with policy, fleet, snapshot and verdicts, not with each reading.
struct PlanTables {
  std::vector<ClassTable> classes;        ///< by ClassIndex
  std::vector<Incarnation> incarnations;  ///< by EngineIndex
  PlacedGroups groups;
  std::vector<std::pair<std::string_view, EngineIndex>> by_name;  ///< sorted; views into the fleet table
};

/// What of its decisions a loop hands out, because somebody listens.
struct Publish {
  bool decisions = false;
  bool inputs = false;
  friend bool operator==(const Publish&, const Publish&) = default;
};

/// Prompt blocks that other routers or loops sent, numbered by the actor from 1 without gaps.
struct SentBatch {
  std::uint64_t number = 0;
  std::uint32_t loop = UINT32_MAX;  ///< of this router, which sent them
  std::vector<schema::SentRow> rows;
};

struct View {
  ClusterName cluster;  ///< of this router
  std::shared_ptr<const policy::CompiledPolicy> policy;
  std::shared_ptr<const schema::FleetTable> table;
  std::shared_ptr<const schema::RoutingSnapshot> snapshot;  ///< null: none yet
  Instant as_of = never_yet;                                ///< what the snapshot knows is of this time
  std::shared_ptr<const PlanTables> plan;
  Publish publish;
  std::vector<EngineFacts> engines;  ///< by EngineIndex
  std::vector<CacheFacts> caches;    ///< by EngineIndex; empty: nobody tells
  std::uint32_t routers = 1;         ///< R: that share these engines, each loop of this one counted
  std::vector<std::uint64_t>
      covered_batches;  ///< by loop: the last batch whose evidence the snapshot has seen
  std::vector<std::shared_ptr<const SentBatch>>
      sent;                      ///< ascending numbers; loops apply those that are new to them
  std::uint64_t generation = 0;  ///< counts the views of this router

  const ClassTable& at(ClassIndex c) const { return plan->classes[c.at()]; }
  const EngineFacts& at(EngineIndex e) const { return engines[e.at()]; }
  CacheFacts cache_of(EngineIndex e) const { return e.at() < caches.size() ? caches[e.at()] : CacheFacts{}; }
  std::optional<EngineIndex> find_engine(std::string_view name) const;
  /// The plan is there and young enough to be followed.
  bool plan_in_force(Instant now) const { return plan_younger_than(policy->stale.snapshot_degrade, now); }
  /// It is of this load, not only of this fleet: what it refuses is refused, and what it leaves out is left out.
  bool plan_fresh(Instant now) const { return plan_younger_than(policy->stale.snapshot_warn, now); }
  bool plan_younger_than(Duration age, Instant now) const {
    return snapshot != nullptr && as_of != never_yet && now - as_of < age;
  }
};

/// The latest words on one engine; null where nothing was heard. The actor keeps them alive during build_view().
struct EngineInput {
  const schema::HealthVerdict* verdict = nullptr;
  const schema::EngineSignal* signal = nullptr;
  Instant signal_at = never_yet;  ///< the time that the signal describes: arrival less its age
  const schema::EngineProfile* profile = nullptr;
  const schema::CacheDigest* cache = nullptr;
};

struct ViewInputs {
  ClusterName cluster;                                      ///< of this router
  std::shared_ptr<const policy::CompiledPolicy> policy;     ///< required
  std::shared_ptr<const schema::FleetTable> table;          ///< required
  std::shared_ptr<const schema::RoutingSnapshot> snapshot;  ///< may be null
  Instant as_of = never_yet;                                ///< arrival of the snapshot less its as_of_age
  std::vector<EngineInput> engines;    ///< by EngineIndex; shorter: nothing heard of the rest
  std::vector<double> measured_rtt_s;  ///< by ClusterIndex; shorter or NaN: as declared
  std::uint32_t routers = 1;
  Publish publish;
  std::vector<std::uint64_t> covered_batches;
  std::vector<std::shared_ptr<const SentBatch>> sent;
};

/// Why a snapshot may not be routed by.
struct Refusal {
  schema::ReceiptReason reason = schema::ReceiptReason::illegal;
  std::string detail;
};

/// Checks the snapshot against policy and table: hashes, rows in range and order, finite numbers, sums, allowed sets.
/// Whether it is newer than the one in force is the caller's question.
std::optional<Refusal> check_snapshot(const schema::RoutingSnapshot& snapshot,
                                      const policy::CompiledPolicy& policy, const schema::FleetTable& table,
                                      const ClusterName& cluster);

/// Builds the next view. `previous` (may be null) lends what has not changed. Refuses a snapshot that
/// check_snapshot() refuses, and a table without this router's cluster (wrong_cluster); the caller keeps the view that
/// it has.
tl::expected<std::shared_ptr<const View>, Refusal> build_view(const ViewInputs& inputs, const View* previous);

}  // namespace signalbox::routing
