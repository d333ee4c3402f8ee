// What the control plane broadcasts, and what routers answer.
#pragma once

#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// Where a plan comes from.
enum class PlanKind : std::uint8_t { optimal, hold, feedback };

/// One weight: of all requests of this class that enter this cluster, the share that this engine is planned
/// to get.
struct WeightRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  EngineIndex engine;
  double weight = 0;
  double planned_inflight = 0;
  static constexpr auto fields() {
    using T = WeightRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the policy's class"),
        field(2, "engine", &T::engine, "row of the engine"),
        field(3, "weight", &T::weight, "share of the class's admitted requests; a class's weights sum to 1")
            .within(0, 1),
        field(4, "planned_inflight", &T::planned_inflight,
              "requests of this cluster and class planned to be in flight there")
            .unit("requests")
            .within(0, 1e7)};
  }
};

/// Why a limit holds a price up.
enum class Binding : std::uint8_t { none, capacity, kv_memory, weight_cap, domain_cap, health, churn, batch };

/// One engine's price: what one more second of its time costs everybody who shares it.
struct PriceRow {
  static constexpr bool columnar = true;
  EngineIndex engine;
  double price = 0;
  double planned_load = 0;
  double capacity = 0;
  double slowness = 1;
  Binding binding = Binding::none;
  double congestion = 0;
  static constexpr auto fields() {
    using T = PriceRow;
    return std::tuple{
        field(1, "engine", &T::engine, "row of the engine"),
        field(2, "price", &T::price, "marginal cost of a second of its time").unit("s/s").within(0, 1e9),
        field(3, "planned_load", &T::planned_load, "engine time asked of it by all clusters")
            .unit("s/s")
            .within(0, 1e6),
        field(4, "capacity", &T::capacity, "engine time that may be planned, after health and headroom")
            .unit("s/s")
            .within(0, 1e6),
        field(5, "slowness", &T::slowness, "measured over declared time per token, as planned with")
            .unit("ratio")
            .within(0.05, 100),
        field(6, "binding", &T::binding, "the limit that holds it back"),
        field(7, "congestion", &T::congestion,
              "the price without the rent of a limit that holds: the delay alone; 0: not said")
            .unit("s/s")
            .within(0, 1e9)};
  }
};

/// What the plan does with one class in this cluster.
struct AdmitRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  double admit = 1;
  double planned_rps = 0;
  double prompt_tokens = 0;
  double output_tokens = 0;
  static constexpr auto fields() {
    using T = AdmitRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "admit", &T::admit, "share of the offered requests to admit").unit("share").within(0, 1),
        field(3, "planned_rps", &T::planned_rps, "offered rate that was planned for")
            .unit("requests/s")
            .within(0, 1e9),
        field(4, "prompt_tokens", &T::prompt_tokens,
              "mean prompt tokens that the cache misses, as planned with")
            .unit("tokens")
            .within(0, 1e9),
        field(5, "output_tokens", &T::output_tokens, "mean output tokens, as planned with")
            .unit("tokens")
            .within(0, 1e9)};
  }
};

/// The engines that a class may use at all: somewhere to go when a whole row dies.
struct AllowedRow {
  ClassIndex request_class;
  Bytes engines;
  static constexpr auto fields() {
    using T = AllowedRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "engines", &T::engines, "a bit an engine, in table order, least significant bit first")
            .at_most(4096)};
  }
};

/// Why an engine got no flow of a class, or the runner-up's distance.
enum class LosingReason : std::uint8_t {
  dearer,
  full,
  gone,
  draining,
  not_allowed,
  wrong_model,
  weight_cap,
  dead_band
};

/// An engine that a class does not use, and by how much it lost.
struct RunnerUpRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  EngineIndex engine;
  double reduced_cost_s = 0;
  LosingReason reason = LosingReason::dearer;
  double less_loaded = 0;
  static constexpr auto fields() {
    using T = RunnerUpRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "engine", &T::engine, "row of the engine"),
        field(3, "reduced_cost_s", &T::reduced_cost_s, "how much cheaper a request there would have to be")
            .unit("s")
            .within(-1e6, 1e9),
        field(4, "reason", &T::reason, "why it lost"),
        field(5, "less_loaded", &T::less_loaded,
              "share of its load that would have to go for the class to use it; over 1: not even if it were "
              "idle; 0: "
              "not said")
            .unit("share")
            .within(0, 2)};
  }
};

/// The parts of what a plan is expected to cost.
enum class CostPart : std::uint8_t { network, egress, cache, service, congestion, churn, shed };

/// One of them, for the whole fleet.
struct CostRow {
  static constexpr bool columnar = true;
  CostPart part = CostPart::network;
  double cost = 0;
  static constexpr auto fields() {
    using T = CostRow;
    return std::tuple{
        field(1, "part", &T::part, "the part"),
        field(2, "cost", &T::cost, "seconds of latency that accrue in a second; negative: saved")
            .unit("s/s")
            .within(-1e15, 1e15)};
  }
};

/// A hot prefix group on one engine that the plan means to hold it. A group's shares in a cluster sum to 1.
struct GroupRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  std::uint64_t group = 0;
  double prefix_tokens = 0;
  EngineIndex engine;
  double share = 0;
  double rate_per_s = 0;
  double more_at_per_s = 0;
  static constexpr auto fields() {
    using T = GroupRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "group", &T::group, "as the routers report it"),
        field(3, "prefix_tokens", &T::prefix_tokens, "what is shared, and held there")
            .unit("tokens")
            .within(0, 1e9),
        field(4, "engine", &T::engine, "row of the engine"),
        field(5, "share", &T::share, "share of the group's requests in this cluster").within(0, 1),
        field(6, "rate_per_s", &T::rate_per_s, "the group's rate, of all clusters, that was planned for")
            .unit("requests/s")
            .within(0, 1e9),
        field(7, "more_at_per_s", &T::more_at_per_s,
              "the rate from which one more engine would hold it; 0: none would")
            .unit("requests/s")
            .within(0, 1e12)};
  }
};

/// A limit of the policy that shapes more than one engine's load.
enum class PolicyLimit : std::uint8_t {
  weight_cap,
  domain_cap,
  spread,
  survival,
  cache_memory,
  churn,
  capacity
};

/// Where such a limit binds: the plan would be cheaper without it.
struct LimitRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  EngineIndex engine;
  PolicyLimit limit = PolicyLimit::weight_cap;
  double moved = 0;
  bool held = true;
  double price_s = 0;
  static constexpr auto fields() {
    using T = LimitRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "engine", &T::engine, "row of the engine"),
        field(3, "limit", &T::limit, "the limit"),
        field(4, "moved", &T::moved,
              "share of the class's requests that it moves to this engine; negative: away from it")
            .unit("share")
            .within(-1, 1),
        field(5, "held", &T::held, "whether the engines that are left suffice to hold it"),
        field(6, "price_s", &T::price_s,
              "what one more request of the class would save if the limit let it go to this engine, at the "
              "plan's loads; 0: nothing, or not known")
            .unit("s")
            .within(0, 1e9)};
  }
};

/// Up to which report of a router the plan has seen evidence.
struct CoverRow {
  ProcessName router;
  Incarnation incarnation;
  std::uint64_t report = 0;
  static constexpr auto fields() {
    using T = CoverRow;
    return std::tuple{field(1, "router", &T::router, "the router"),
                      field(2, "incarnation", &T::incarnation, "which life of it"),
                      field(3, "report", &T::report, "number of its last outcome report that the plan knew")};
  }
};

/// A verified plan as published for one cluster. Full and idempotent; the highest version wins.
struct RoutingSnapshot {
  static constexpr MessageInfo info{21,
                                    5,
                                    "routing_snapshot",
                                    "snapshot/<cluster>/<optimizer>/",
                                    "the routing weights of one cluster, with the prices that explain them",
                                    {Role::global_optimizer, Role::feedback_balancer},
                                    Protection::signature,
                                    24h,
                                    8 << 20};

  SnapshotVersion version;
  ClusterName cluster;
  Digest policy;
  Digest table;
  Duration as_of_age{};
  Duration period{};
  PlanKind kind = PlanKind::optimal;
  std::vector<WeightRow> weights;
  std::vector<AdmitRow> admits;
  std::vector<AllowedRow> allowed;
  std::vector<PriceRow> prices;
  std::vector<RunnerUpRow> runners_up;
  std::vector<CoverRow> covers;
  double objective = 0;
  double lower_bound = 0;
  double gap = 0;
  std::string cause;
  std::vector<CostRow> costs;
  double moved = 0;
  std::vector<GroupRow> groups;
  std::vector<LimitRow> limits;

  static constexpr auto fields() {
    using T = RoutingSnapshot;
    return std::tuple{
        field(1, "version", &T::version, "term and sequence"),
        field(2, "cluster", &T::cluster, "the cluster that it is for"),
        field(3, "policy", &T::policy, "hash of the policy that it obeys"),
        field(4, "table", &T::table, "hash of the fleet table that its rows index"),
        field(5, "as_of_age", &T::as_of_age, "age, when sent, of the facts that it was planned from")
            .unit("s")
            .within(0, 1e9),
        field(6, "period", &T::period, "when the next one is due").unit("s").within(0, 1e5),
        field(7, "kind", &T::kind, "where the plan comes from"),
        field(8, "weights", &T::weights, "the weights, sorted by class, then engine").at_most(2'000'000),
        field(9, "admits", &T::admits, "per class").at_most(10'000),
        field(10, "allowed", &T::allowed, "per class").at_most(10'000),
        field(11, "prices", &T::prices, "per engine").at_most(20'000),
        field(12, "runners_up", &T::runners_up, "the engines that came closest without being used")
            .at_most(100'000),
        field(13, "covers", &T::covers, "the evidence that the plan has seen").at_most(1000),
        field(14, "objective", &T::objective, "expected cost of the plan").unit("s/s").within(-1e15, 1e15),
        field(15, "lower_bound", &T::lower_bound, "no plan can cost less").unit("s/s").within(-1e15, 1e15),
        field(16, "gap", &T::gap, "relative distance between the two").unit("share").within(0, 1e9),
        field(17, "cause", &T::cause, "what changed since the last plan").at_most(512),
        field(18, "costs", &T::costs, "the objective by its parts, for the whole fleet").at_most(64),
        field(19, "moved", &T::moved,
              "share of this cluster's requests that go elsewhere than by the last plan")
            .unit("share")
            .within(0, 1),
        field(20, "groups", &T::groups, "where hot prefixes are held, sorted by class, group, engine")
            .at_most(100'000),
        field(21, "limits", &T::limits, "where limits of the policy bind that no engine's price shows")
            .at_most(100'000),
    };
  }
};

/// Each second from the leader: it is there, and this is in force.
struct KeepAlive {
  static constexpr MessageInfo info{22,
                                    1,
                                    "keep_alive",
                                    "alive/<optimizer>/",
                                    "the leader is there, and which snapshots are in force",
                                    {Role::global_optimizer, Role::feedback_balancer},
                                    Protection::signature,
                                    5s,
                                    1024};

  SnapshotVersion version;
  Digest snapshots;
  bool holding = false;
  double heard_share = 0;
  static constexpr auto fields() {
    using T = KeepAlive;
    return std::tuple{field(1, "version", &T::version, "the version in force"),
                      field(2, "snapshots", &T::snapshots, "hash over the snapshots of all clusters"),
                      field(3, "holding", &T::holding, "the leader does not re-optimise now"),
                      field(4, "heard_share", &T::heard_share, "share of the fleet's engines that it hears")
                          .unit("share")
                          .within(0, 1)};
  }
};

/// Why a router refused a snapshot, or that it took it.
enum class ReceiptReason : std::uint8_t {
  accepted,
  older,
  wrong_policy,
  wrong_table,
  illegal,
  implausible_term,
  wrong_cluster
};

/// A router's answer to a snapshot.
struct SnapshotReceipt {
  static constexpr MessageInfo info{23,
                                    1,
                                    "snapshot_receipt",
                                    "receipt/<cluster>/<router>/",
                                    "a router took a snapshot, or why not",
                                    {Role::cluster_router},
                                    Protection::mac,
                                    30s,
                                    1024};

  ClusterName cluster;
  SnapshotVersion version;
  ReceiptReason reason = ReceiptReason::accepted;
  std::string detail;
  SnapshotVersion in_force;
  static constexpr auto fields() {
    using T = SnapshotReceipt;
    return std::tuple{field(1, "cluster", &T::cluster, "the router's cluster"),
                      field(2, "version", &T::version, "the snapshot that this answers"),
                      field(3, "reason", &T::reason, "accepted, or why not"),
                      field(4, "detail", &T::detail, "the reason in words").at_most(512),
                      field(5, "in_force", &T::in_force, "the version that the router routes by now")};
  }
};

}  // namespace signalbox::schema

template <>
struct signalbox::EnumTable<signalbox::schema::PlanKind> {
  static constexpr std::array rows{
      EnumRow{"optimal", "solved, certified and verified"},
      EnumRow{"hold", "the last plan with what is gone or forbidden moved away"},
      EnumRow{"feedback", "nudged by the legacy balancer"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::Binding> {
  static constexpr std::array rows{
      EnumRow{"none", "no limit binds"},
      EnumRow{"capacity", "its engine time is used up to the headroom"},
      EnumRow{"kv_memory", "its KV memory is used up"},
      EnumRow{"weight_cap", "the policy caps an engine's weight"},
      EnumRow{"domain_cap", "the policy caps a failure domain's weight"},
      EnumRow{"health", "its health lowers its capacity"},
      EnumRow{"churn", "moving more would cost more than it gains"},
      EnumRow{"batch", "its greatest batch is full"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::PolicyLimit> {
  static constexpr std::array rows{
      EnumRow{"weight_cap", "no engine gets more than the policy's share of a class"},
      EnumRow{"domain_cap", "no failure domain gets more than the policy's share of a class"},
      EnumRow{"spread", "the class is served by as many engines and racks as the policy asks for"},
      EnumRow{"survival", "the rest can carry the class if a failure domain is lost"},
      EnumRow{"cache_memory", "hot prefix groups hold no more of an engine's KV memory"},
      EnumRow{"churn", "no more of the class's weights moves at a time"},
      EnumRow{"capacity", "the engines in service can carry the class and what the policy keeps for it"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::CostPart> {
  static constexpr std::array rows{
      EnumRow{"network", "round trips from clusters to engines"},
      EnumRow{"egress", "leaving a region, as seconds"},
      EnumRow{"cache", "what engines' caches save"},
      EnumRow{"service", "latency on idle engines"},
      EnumRow{"congestion", "latency that load causes"},
      EnumRow{"churn", "moving requests away from where the last plan sent them"},
      EnumRow{"shed", "refusing requests, at the policy's price"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::LosingReason> {
  static constexpr std::array rows{
      EnumRow{"dearer", "a request costs more there"},
      EnumRow{"full", "its capacity is used up"},
      EnumRow{"gone", "its health forbids it"},
      EnumRow{"draining", "it is being drained"},
      EnumRow{"not_allowed", "the policy forbids it for this class"},
      EnumRow{"wrong_model", "it does not serve the class's model"},
      EnumRow{"weight_cap", "the policy's cap on its weight or domain is reached"},
      EnumRow{"dead_band", "the gain is too small to move for"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::ReceiptReason> {
  static constexpr std::array rows{
      EnumRow{"accepted", "it is in force"},
      EnumRow{"older", "a newer one is in force"},
      EnumRow{"wrong_policy", "it obeys a policy that is not in force here"},
      EnumRow{"wrong_table", "it indexes a fleet table that is not known here"},
      EnumRow{"illegal", "it breaks the policy"},
      EnumRow{"implausible_term", "its term jumps too far"},
      EnumRow{"wrong_cluster", "it is for another cluster"},
  };
};
