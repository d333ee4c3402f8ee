// A policy that was parsed, checked and resolved: plain numbers and tables, every default filled in.
// Immutable, shared by all threads. compile.hpp makes one from text; docs/policy.md is the language.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/digest.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "messages/base/words.hpp"

namespace signalbox::policy {

// ----------------------------------------------------------------------------------------------------------
// tables

/// A model's version, "3.1". Ordered.
struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
inline constexpr Version highest_version{UINT32_MAX, UINT32_MAX};

/// Versions from `low` to `high`, both included.
struct VersionRange {
  Version low{};
  Version high = highest_version;
  bool contains(Version v) const { return low <= v && v <= high; }
  friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

struct ModelRow {
  ModelName name;
  VersionRange versions;
  friend bool operator==(const ModelRow&, const ModelRow&) = default;
};

/// A zone of residency and the regions that lie in it.
struct ZoneRow {
  DomainName name;
  std::vector<DomainName> regions;
  friend bool operator==(const ZoneRow&, const ZoneRow&) = default;
};

/// A tenant's name, or a prefix of names ("bank_*", "*").
struct TenantPattern {
  std::string text;  ///< without the star
  bool prefix = false;
  bool matches(std::string_view tenant) const { return prefix ? tenant.starts_with(text) : tenant == text; }
  friend auto operator<=>(const TenantPattern&, const TenantPattern&) = default;
};

/// Weights of the objective's parts; each multiplies seconds (egress: seconds per unit of egress cost, churn:
/// seconds per unit of weight moved).
struct ObjectiveWeights {
  double ttft = 1.0;
  double tpot = 1.0;
  double egress = 0.2;
  double churn = 0.1;
  friend bool operator==(const ObjectiveWeights&, const ObjectiveWeights&) = default;
};

inline constexpr std::size_t max_zones = 64;
inline constexpr std::size_t max_classes = 4096;
inline constexpr std::size_t max_models = 1024;
inline constexpr std::uint64_t unlimited_tokens = UINT64_MAX;

/// What a class asks for in a request, and what it gives. Rows are in the file's order: the first that
/// matches wins.
struct ClassRow {
  ClassName name;
  // Which requests.
  ModelIndex model;
  VersionRange versions;
  std::vector<TenantPattern> tenants;
  std::bitset<criticality_count + 1> asked =
      0b1111;                    ///< by Criticality asked for; the last bit: none asked for
  std::uint64_t tokens_low = 0;  ///< estimated tokens, both bounds included
  std::uint64_t tokens_high = unlimited_tokens;
  // What they get.
  Criticality criticality = Criticality::standard;
  bool any_zone = true;
  std::bitset<max_zones> zones;   ///< rows of CompiledPolicy::zones; empty when any_zone
  bool strict = false;            ///< residency holds in every mode; this version never leaves it in any case
  double shed_cost_seconds = 0;   ///< what the plan pays for refusing one request, as seconds of latency
  double floor_share = 0;         ///< the share of offered demand that is admitted even in overload
  bool continue_streams = false;  ///< a stream whose engine broke goes on at another engine
  double demand_low_tokens_per_s =
      0;  ///< declared bounds of the offered demand: a forecast's guard, not a rate limit
  double demand_high_tokens_per_s = std::numeric_limits<double>::infinity();
  /// On how many engines and racks each cluster's requests are spread: the largest of them, one less than this, get at most
  /// 1 - spread_rest together.
  std::uint32_t spread_engines = 1, spread_racks = 1;
  double ttft_weight = 1, tpot_weight = 1;  ///< multiply the objective's weights for its requests
  int line = 0;                             ///< of the source; not part of the hash
  int spread_line = 0;                      ///< likewise
};
inline constexpr double spread_rest = 0.05;
inline constexpr std::uint32_t most_spread = 16;

// ---------------------------------------------------------------------------------------------------------
// numbers

/// What fails together.
enum class DomainLevel : std::uint8_t { rack, cluster, region, zone };

/// Classes of at least `from` are planned so that the loss of any one domain of `level` leaves engines that carry them.
struct Survive {
  DomainLevel level = DomainLevel::rack;
  Criticality from = Criticality::critical;
  int line = 0;  ///< of the source; not part of the hash
};

/// How much of a row's weights may move: the sum over its engines of what each gains or loses. Leaving an engine that may serve no
/// more is free.
struct Churn {
  std::optional<double> per_snapshot;
  std::optional<double> in_window;  ///< the sum over all snapshots of any `window`
  Duration window{};
  bool limited() const { return per_snapshot || in_window; }
};

/// The engines that may serve a class, all or those in one place, carry at least `factor` times its demand: what is declared, by the whole
/// fleet, before the policy comes into force; what is planned for, by the engines in service.
struct Reserve {
  ClassIndex of;
  std::optional<DomainLevel> level;  ///< none: anywhere
  DomainName place;
  double factor = 1;
  int line = 0;  ///< of the source; not part of the hash
};

/// Limits that every plan holds. Shares are in [0, 1].
struct Limits {
  double load_ceiling = 0.85;               ///< load of one engine over its capacity
  std::optional<double> engine_weight_cap;  ///< share of one (cluster, class) row that one engine may get
  std::optional<double> rack_weight_cap;    ///< the same for all engines of one rack
  std::optional<double> cluster_weight_cap, region_weight_cap, zone_weight_cap;
  std::uint32_t in_flight_cap = 256;  ///< requests that one router keeps open on one engine
  std::vector<Survive> survive;       ///< ascending by level
  Churn churn;
  std::vector<Reserve> reserves;

  /// The caps of failure domains, from the inside out: each level's domains lie in one of the next.
  std::array<std::pair<DomainLevel, std::optional<double>>, 4> domain_caps() const {
    return {{{DomainLevel::rack, rack_weight_cap},
             {DomainLevel::cluster, cluster_weight_cap},
             {DomainLevel::region, region_weight_cap},
             {DomainLevel::zone, zone_weight_cap}}};
  }
  bool caps_domains() const {
    return rack_weight_cap || cluster_weight_cap || region_weight_cap || zone_weight_cap;
  }
  bool caps_weights() const { return engine_weight_cap || caps_domains(); }
};

/// Hot prefix groups.
struct Cache {
  double group_memory = 0.5;  ///< share of an engine's KV memory that the groups placed on it may hold
};

/// Who is refused first. The rows hold these costs and floors, unless the class has its own.
struct Shed {
  std::vector<Criticality> order{Criticality::sheddable,
                                 Criticality::standard};  ///< first refused first; the rest comes last
  std::array<double, criticality_count> cost_seconds{30, 120, 600};  ///< by Criticality, rising
  std::array<double, criticality_count> floor_share{0, 0, 0};
};

/// Kinds of failure of one attempt, as seen by a router.
enum class FailureKind : std::uint8_t {
  connect,  ///< no connection
  reset,    ///< closed before the response head
  timeout,  ///< no first byte in time
  status,   ///< a 5xx answer
  broken,   ///< the stream ended before its end
  slow,     ///< an outlier in latency
};
inline constexpr std::size_t failure_kind_count = 6;

struct Retry {
  double budget_ratio = 0.20;  ///< retries over first attempts
  std::uint32_t budget_burst = 50;
  std::uint32_t attempts = 2;   ///< per request, the first included
  double deadline_share = 0.5;  ///< no retry once this share of the deadline has passed
  std::array<bool, failure_kind_count> on{true,  true,  true,
                                          false, false, false};  ///< broken, slow: never; status: by list
  std::vector<std::uint16_t> statuses{502, 503};                 ///< ascending
  std::vector<std::uint16_t> never_statuses{400, 401, 403,
                                            404, 413, 422};  ///< ascending, disjoint from `statuses`
  /// A request of at most so many tokens, prompt and expected answer, goes to a second engine too when its first byte is
  /// late; 0: never.
  std::uint32_t hedge_tokens = 0;
  double hedge_quantile = 0.95;  ///< late: later than this share of its class's first bytes,
  Duration hedge_least = std::chrono::milliseconds(100);  ///< and than this

  bool retries_status(int status) const;
  bool retries(FailureKind kind) const { return on[static_cast<std::size_t>(kind)]; }
};

/// An engine's weight is multiplied by max(floor, product over failures of factor^(2^-(age / half_life))).
struct Penalty {
  std::array<double, failure_kind_count> factor{0.2, 0.4, 0.3, 0.5, 0.4, 0.8};  ///< in (0, 1], by FailureKind
  Duration half_life = std::chrono::seconds(10);
  double floor = 0.02;
  Duration retry_after_cap =
      std::chrono::seconds(30);  ///< an engine's own Retry-After is honoured up to this

  double of(FailureKind kind) const { return factor[static_cast<std::size_t>(kind)]; }
};

/// None is infinite. A request may ask for a shorter deadline than `total`, never for a longer one.
struct Timeouts {
  Duration connect = std::chrono::seconds(2);
  Duration first_byte = std::chrono::seconds(30);
  Duration gap = std::chrono::seconds(30);  ///< between two chunks of a stream
  Duration total = std::chrono::seconds(600);
};

struct Eject {
  double max_share = 0.30;    ///< of an engine set that the monitor may take out by its own judgement
  double panic_below = 0.50;  ///< under this share of ready engines verdicts other than gone are ignored
};

/// What is too old. degraded mode chooses the least loaded engine of the class's allowed set.
struct Stale {
  Duration signal_soft = std::chrono::seconds(1);  ///< marked in the explanation, capacity reduced
  Duration signal_hard = std::chrono::seconds(5);  ///< unknown
  Duration snapshot_warn = std::chrono::seconds(10);
  Duration snapshot_degrade = std::chrono::hours(1);
};

/// What the plan may expect of engines that are not simply ready, as shares of their capacity.
struct Health {
  double degraded_capacity = 0.5;
  double starting_capacity = 0.3;
};

struct Lead {
  double coverage = 0.6;  ///< a leader that hears a smaller share of the fleet's engines does not re-optimise
};

/// The bounded queue of each class at each router.
struct Queue {
  Duration max_wait = std::chrono::seconds(2);
  std::uint32_t depth = 64;
  /// A router sends an engine less when its first bytes come later than its curve says by more than this; 0: never.
  Duration target{};
  Duration retry_after_low = std::chrono::seconds(1);  ///< bounds of the Retry-After that a refusal carries
  Duration retry_after_high = std::chrono::seconds(30);
};

/// Constants of decide(): reference/routing-rule section 2 has their sensitivities.
struct Routing {
  double eta = 1.0;         ///< price of the engine time that a request adds, with a plan
  double eta_local = 3.0;   ///< the same without a plan, when the plan's prices are missing
  double tw = 3.0;          ///< weight of time to first token
  double kv_guard = 0.95;   ///< skip an engine whose KV memory would pass this share while another fits
  double xi = 0.6;          ///< other routers' moves since the last signal, as a share of our own
  std::uint32_t draws = 4;  ///< candidates drawn by weight
};

/// The objective of the fleet, and the bounds within which its weights may be changed.
struct Objective {
  ObjectiveWeights weights;
  ObjectiveWeights low{0, 0, 0, 0};
  ObjectiveWeights high{10, 10, 10, 10};
};

// -------------------------------------------------------------------------------------------------------
// questions

/// All that a policy can know of a request. There is no field for its content.
struct RequestAttributes {
  std::string_view tenant;
  std::string_view model;
  std::string_view version;            ///< "3.1"; empty: the model's newest
  std::optional<Criticality> asked;    ///< what the client asks for
  std::uint64_t session_hash = 0;      ///< 0: no session; does not choose the class
  std::uint64_t estimated_tokens = 0;  ///< prompt and expected answer
};

/// Why a request got its class, or none.
enum class Rule : std::uint8_t {
  matched,          ///< the first class that matches
  unknown_model,    ///< no catalogue declares the model
  unknown_version,  ///< the model has no such version
  otherwise,        ///< no class matches: the policy's `otherwise`
};

/// A class and the effective criticality, or a refusal with its HTTP status.
struct Classified {
  ClassIndex index;                                  ///< valid: admitted to the class
  Criticality criticality = Criticality::sheddable;  ///< the lesser of the class's and the one asked for
  bool capped = false;                               ///< more was asked for than the class gives
  std::uint16_t status = 0;                          ///< of the refusal; 0 when admitted
  Rule rule = Rule::otherwise;

  bool admitted() const { return index.valid(); }
};

/// Where an engine stands. Names as the fleet table has them; an empty rack is a rack of its own.
struct DomainPath {
  std::string_view rack;
  std::string_view cluster;
  std::string_view region;
  std::string_view zone;
};

struct CompiledPolicy {
  std::string name;
  std::uint64_t version = 0;
  std::string owner;
  std::string review_by;  ///< a date, shown and not judged; may be empty
  Digest hash;            ///< of canonical_text(): every number in force, no comment, no layout

  std::vector<ModelRow> models;
  std::vector<ZoneRow> zones;
  std::vector<ClassRow> classes;
  std::uint16_t otherwise_status = 403;

  Limits limits;
  Shed shed;
  Retry retry;
  Penalty penalty;
  Timeouts timeouts;
  Eject eject;
  Stale stale;
  Health health;
  Lead lead;
  Queue queue;
  Cache cache;
  Routing routing;
  Objective objective;

  /// Total and single-valued; no allocation. Linear in the classes of the request's model.
  Classified classify(const RequestAttributes& request) const;
  /// Whether requests of this class may be served there: by residency. False for zones and regions that the
  /// policy does not declare, unless the class may go anywhere.
  bool allows(ClassIndex index, const DomainPath& path) const;
  /// The class in words: who belongs to it, what it gets, where it stands in the file.
  std::string explain(ClassIndex index) const;

  std::optional<ModelIndex> find_model(std::string_view model) const;
  std::optional<ClassIndex> find_class(std::string_view class_name) const;
  /// Whether it has limits on how a class's requests are divided: caps, spread, survival.
  bool limits_rows() const;
  const ClassRow& at(ClassIndex index) const { return classes[index.at()]; }
  const ModelRow& at(ModelIndex index) const { return models[index.at()]; }

  /// Rows of `classes` by model, in order, and of `models` by name; filled by index(), which compile() calls.
  std::vector<std::vector<ClassIndex>> classes_of_model;
  std::vector<ModelIndex> models_by_name;
  void index();
};

}  // namespace signalbox::policy

namespace signalbox {

template <>
struct EnumTable<policy::DomainLevel> {
  static constexpr std::array rows{
      EnumRow{"rack", "the engines of one rack; an engine without one is a rack of its own"},
      EnumRow{"cluster", "the engines of one cluster"},
      EnumRow{"region", "the engines of all clusters in one region"},
      EnumRow{"zone", "the engines of all clusters in one zone"},
  };
};

template <>
struct EnumTable<policy::FailureKind> {
  static constexpr std::array rows{
      EnumRow{"connect", "no connection to the engine"},
      EnumRow{"reset", "the connection was closed before the response head"},
      EnumRow{"timeout", "no first byte in time"},
      EnumRow{"status", "the engine answered 5xx"},
      EnumRow{"broken", "the stream ended before its end"},
      EnumRow{"slow", "the latency was an outlier"},
  };
};
static_assert(enum_size<policy::FailureKind> == policy::failure_kind_count);

template <>
struct EnumTable<policy::Rule> {
  static constexpr std::array rows{
      EnumRow{"matched", "the first class of the policy that matches the request"},
      EnumRow{"unknown_model", "the policy declares no model of this name"},
      EnumRow{"unknown_version", "the policy declares no such version of the model"},
      EnumRow{"otherwise", "no class of the policy matches the request"},
  };
};

}  // namespace signalbox
