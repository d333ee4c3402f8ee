// What routers say about the traffic that they see.
#pragma once

#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// The demand of one class during the report's period. First attempts only; what was shed counts as offered.
struct DemandRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  std::uint64_t offered = 0;
  std::uint64_t admitted = 0;
  std::uint64_t shed = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t finished = 0;
  static constexpr auto fields() {
    using T = DemandRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "offered", &T::offered, "requests that came").unit("requests"),
        field(3, "admitted", &T::admitted, "of these, forwarded").unit("requests"),
        field(4, "shed", &T::shed, "of these, refused").unit("requests"),
        field(5, "prompt_tokens", &T::prompt_tokens, "estimated prompt tokens of the offered ones")
            .unit("tokens"),
        field(6, "cached_tokens", &T::cached_tokens,
              "prompt tokens of the finished ones that engines found cached")
            .unit("tokens"),
        field(7, "output_tokens", &T::output_tokens, "output tokens of the finished ones").unit("tokens"),
        field(8, "finished", &T::finished, "answers completed").unit("requests")};
  }
};

/// Requests of one class that begin with the same blocks, often enough for a plan to place them.
struct HotGroupRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  std::uint64_t group = 0;
  double prefix_tokens = 0;
  std::uint64_t requests = 0;
  static constexpr auto fields() {
    using T = HotGroupRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "group", &T::group,
              "chained, tenant-keyed hash of the prompt up to the end of what is shared"),
        field(3, "prefix_tokens", &T::prefix_tokens, "what is shared").unit("tokens").within(0, 1e9),
        field(4, "requests", &T::requests, "of the class's offered ones").unit("requests")};
  }
};

/// What one router was asked for.
struct DemandReport {
  static constexpr MessageInfo info{30,
                                    2,
                                    "demand_report",
                                    "demand/<cluster>/<router>/",
                                    "offered requests and tokens per class, before admission",
                                    {Role::cluster_router},
                                    Protection::mac,
                                    10s,
                                    1 << 20};

  ClusterName cluster;
  Digest policy;
  Duration period{};
  std::vector<DemandRow> rows;
  std::vector<HotGroupRow> groups;
  static constexpr auto fields() {
    using T = DemandReport;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the router's cluster"),
        field(2, "policy", &T::policy, "hash of the policy whose classes the rows index"),
        field(3, "period", &T::period, "the time that the counts cover").unit("s").within(0, 1e5),
        field(4, "rows", &T::rows, "per class").at_most(10'000),
        field(5, "groups", &T::groups, "hot prefixes; a request counts for the longest that it begins with")
            .at_most(1000)};
  }
};

/// What happened to the attempts on one engine during the report's period, and what is in flight now.
struct OutcomeRow {
  static constexpr bool columnar = true;
  EngineIndex engine;
  double inflight = 0;
  double inflight_prefill_tokens = 0;
  double inflight_kv_tokens = 0;
  std::uint64_t attempts = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t connect_errors = 0;
  std::uint64_t resets = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t server_errors = 0;
  std::uint64_t overloaded = 0;
  std::uint64_t broken_streams = 0;
  std::uint64_t cancelled = 0;
  double connect_s = 0;
  double first_byte_s = 0;
  std::uint64_t first_bytes = 0;
  double first_byte_sum_s = 0;
  double latency_sum_s = 0;
  double decode_sum_s = 0;
  std::uint64_t output_tokens = 0;
  double penalty = 1;
  static constexpr auto fields() {
    using T = OutcomeRow;
    return std::tuple{
        field(1, "engine", &T::engine, "row of the engine"),
        field(2, "inflight", &T::inflight, "in flight now").unit("requests").within(0, 1e7),
        field(3, "inflight_prefill_tokens", &T::inflight_prefill_tokens,
              "prompt tokens sent there, no byte yet")
            .unit("tokens")
            .within(0, 1e12),
        field(4, "inflight_kv_tokens", &T::inflight_kv_tokens, "tokens held there by what is in flight")
            .unit("tokens")
            .within(0, 1e12),
        field(5, "attempts", &T::attempts, "attempts ended"),
        field(6, "succeeded", &T::succeeded, "ended well"),
        field(7, "connect_errors", &T::connect_errors, "no connection"),
        field(8, "resets", &T::resets, "connection lost before the head"),
        field(9, "timeouts", &T::timeouts, "no first byte in time"),
        field(10, "server_errors", &T::server_errors, "answered 5xx"),
        field(11, "overloaded", &T::overloaded, "answered 429 or 503"),
        field(12, "broken_streams", &T::broken_streams, "died after the first byte"),
        field(13, "cancelled", &T::cancelled, "the client left, or another attempt answered first"),
        field(14, "connect_s", &T::connect_s, "smoothed time to connect").unit("s").within(0, 1e4),
        field(15, "first_byte_s", &T::first_byte_s, "smoothed time to the first byte")
            .unit("s")
            .within(0, 1e5),
        field(16, "first_bytes", &T::first_bytes, "answers behind first_byte_sum_s"),
        field(17, "first_byte_sum_s", &T::first_byte_sum_s, "sum of times to the first byte")
            .unit("s")
            .within(0, 1e12),
        field(18, "latency_sum_s", &T::latency_sum_s, "sum of end-to-end times of the succeeded")
            .unit("s")
            .within(0, 1e12),
        field(19, "decode_sum_s", &T::decode_sum_s, "sum of times from first to last byte")
            .unit("s")
            .within(0, 1e12),
        field(20, "output_tokens", &T::output_tokens, "tokens received in these").unit("tokens"),
        field(21, "penalty", &T::penalty, "the router's own multiplier on its weight").within(0, 1)};
  }
};

/// What the plan promised per class and engine, as it came out.
struct ServedRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  EngineIndex engine;
  std::uint64_t requests = 0;
  double latency_sum_s = 0;
  double first_byte_sum_s = 0;
  static constexpr auto fields() {
    using T = ServedRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "engine", &T::engine, "row of the engine"),
        field(3, "requests", &T::requests, "requests served").unit("requests"),
        field(4, "latency_sum_s", &T::latency_sum_s, "sum of their end-to-end times")
            .unit("s")
            .within(0, 1e12),
        field(5, "first_byte_sum_s", &T::first_byte_sum_s, "sum of their times to the first byte")
            .unit("s")
            .within(0, 1e12)};
  }
};

/// What came of the requests that one router forwarded.
struct OutcomeReport {
  static constexpr MessageInfo info{31,
                                    1,
                                    "outcome_report",
                                    "outcome/<cluster>/<router>/",
                                    "per engine: attempts, failures, times, and what is in flight",
                                    {Role::cluster_router},
                                    Protection::mac,
                                    10s,
                                    8 << 20};

  ClusterName cluster;
  Digest policy;
  Digest table;
  std::uint64_t number = 0;
  Duration period{};
  std::vector<OutcomeRow> engines;
  std::vector<ServedRow> served;
  std::uint64_t queue_dropped = 0;
  static constexpr auto fields() {
    using T = OutcomeReport;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the router's cluster"),
        field(2, "policy", &T::policy, "hash of the policy whose classes the rows index"),
        field(3, "table", &T::table, "hash of the fleet table that the rows index"),
        field(4, "number", &T::number, "counts this router's reports; snapshots say up to which they know"),
        field(5, "period", &T::period, "the time that the counts cover").unit("s").within(0, 1e5),
        field(6, "engines", &T::engines, "per engine").at_most(20'000),
        field(7, "served", &T::served, "per class and engine").at_most(500'000),
        field(8, "queue_dropped", &T::queue_dropped,
              "events that the gateway dropped because its queue was full")};
  }
};

/// One prompt block that was sent to an engine.
struct SentRow {
  static constexpr bool columnar = true;
  EngineIndex engine;
  std::uint64_t block = 0;
  static constexpr auto fields() {
    using T = SentRow;
    return std::tuple{
        field(1, "engine", &T::engine, "row of the engine"),
        field(2, "block", &T::block, "chained, tenant-keyed hash of the prompt up to the end of this block")};
  }
};

/// Shared cache knowledge: which prompt blocks a router sent where. Hashes only.
struct SentPrefixes {
  static constexpr MessageInfo info{32,
                                    1,
                                    "sent_prefixes",
                                    "sent/<cluster>/<router>/",
                                    "keyed hashes of the prompt blocks that were sent to each engine",
                                    {Role::cluster_router},
                                    Protection::mac,
                                    0s,
                                    4 << 20};

  ClusterName cluster;
  Digest table;
  double block_bytes = 0;
  std::vector<SentRow> rows;
  static constexpr auto fields() {
    using T = SentPrefixes;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the router's cluster"),
        field(2, "table", &T::table, "hash of the fleet table that the rows index"),
        field(3, "block_bytes", &T::block_bytes, "bytes of prompt in a block").unit("bytes").within(0, 1e9),
        field(4, "rows", &T::rows, "the blocks, in the order sent").at_most(200'000)};
  }
};

/// What removed a candidate, or that it was chosen.
enum class CandidateFate : std::uint8_t {
  chosen,
  dearer,
  not_drawn,
  not_allowed,
  wrong_model,
  gone,
  suspect,
  draining,
  tried,
  kv_full,
  penalised,
  at_limit,
};

/// One engine as a decision saw it. Costs are in seconds and add up to total_s.
struct CandidateRow {
  static constexpr bool columnar = true;
  EngineIndex engine;
  CandidateFate fate = CandidateFate::not_drawn;
  double weight = 0;
  double penalty = 1;
  double network_s = 0;
  double queue_s = 0;
  double prefill_s = 0;
  double decode_s = 0;
  double price_s = 0;
  double total_s = 0;
  double matched_tokens = 0;
  double inflight = 0;
  Duration signal_age{};
  static constexpr auto fields() {
    using T = CandidateRow;
    return std::tuple{
        field(1, "engine", &T::engine, "row of the engine"),
        field(2, "fate", &T::fate, "chosen, or what removed it"),
        field(3, "weight", &T::weight, "its planned share").within(0, 1),
        field(4, "penalty", &T::penalty, "the router's own multiplier").within(0, 1),
        field(5, "network_s", &T::network_s, "round trip, and what leaving the region costs by the policy")
            .unit("s")
            .within(0, 1e6),
        field(6, "queue_s", &T::queue_s, "wait behind prompts already there").unit("s").within(0, 1e9),
        field(7, "prefill_s", &T::prefill_s, "prefill of what its cache misses").unit("s").within(0, 1e9),
        field(8, "decode_s", &T::decode_s, "decode at its batch size").unit("s").within(0, 1e9),
        field(9, "price_s", &T::price_s, "delay to the others there").unit("s").within(0, 1e9),
        field(10, "total_s", &T::total_s, "the cost that decides").unit("s").within(0, 1e9),
        field(11, "matched_tokens", &T::matched_tokens, "prompt tokens believed to be in its cache")
            .unit("tokens")
            .within(0, 1e9),
        field(12, "inflight", &T::inflight, "requests believed to be there").unit("requests").within(0, 1e7),
        field(13, "signal_age", &T::signal_age, "age of its last signal").unit("s").within(0, 1e9)};
  }
};

/// How an attempt ended.
enum class AttemptEnd : std::uint8_t {
  open,
  succeeded,
  connect_error,
  reset_before_head,
  first_byte_timeout,
  server_error,
  overloaded,
  client_error,
  broken_stream,
  gap_timeout,
  total_timeout,
  client_left,
  tls_failed,
  untrusted,
  superseded,
};

struct AttemptRow {
  static constexpr bool columnar = true;
  EngineIndex engine;
  AttemptEnd end = AttemptEnd::open;
  std::uint16_t status = 0;
  Duration began{};
  Duration first_byte{};
  Duration ended{};
  static constexpr auto fields() {
    using T = AttemptRow;
    return std::tuple{
        field(1, "engine", &T::engine, "row of the engine"),
        field(2, "end", &T::end, "how it ended"),
        field(3, "status", &T::status, "the engine's HTTP status; 0: none"),
        field(4, "began", &T::began, "since the request's arrival").unit("s").within(0, 1e6),
        field(5, "first_byte", &T::first_byte, "since the request's arrival; 0: none came")
            .unit("s")
            .within(0, 1e6),
        field(6, "ended", &T::ended, "since the request's arrival; 0: still open").unit("s").within(0, 1e6)};
  }
};

/// Why a request was refused, or that it was not.
enum class RefuseReason : std::uint8_t {
  none,
  shed_by_plan,
  shed_by_limit,
  queue_full,
  queue_timeout,
  no_engine,
  no_snapshot,
  deadline_passed,
  retries_exhausted,
  unknown_model,
  policy_reject,
  draining,
  bad_request,
};

/// How much of a decision is still known.
enum class RecordKept : std::uint8_t { whole, filed };

/// One request's routing: enough to say why, without a word of its text.
struct DecisionRecord {
  static constexpr MessageInfo info{33,
                                    2,
                                    "decision_record",
                                    "decision/<cluster>/<router>/",
                                    "why one request went where it went",
                                    {Role::cluster_router},
                                    Protection::mac,
                                    0s,
                                    1 << 16};

  ClusterName cluster;
  std::string decision;
  ClassIndex request_class;
  std::string class_name;
  ModelName model;
  std::string rule;
  SnapshotVersion snapshot;
  Duration snapshot_age{};
  Digest policy;
  Digest table;
  EngineIndex engine;
  EngineName engine_name;
  RefuseReason refused = RefuseReason::none;
  std::uint16_t status = 0;
  double prompt_tokens = 0;
  double output_tokens = 0;
  std::uint64_t seed = 0;
  bool degraded = false;
  std::vector<CandidateRow> candidates;
  std::vector<AttemptRow> attempts;
  Duration arrived{};
  Duration took{};
  std::uint16_t continued = 0;
  RecordKept kept = RecordKept::whole;
  Duration arrived_wall{};

  static constexpr auto fields() {
    using T = DecisionRecord;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the router's cluster"),
        field(2, "decision", &T::decision, "its id, as in the answer's x-signalbox-decision").at_most(64),
        field(3, "class", &T::request_class, "row of the class"),
        field(4, "class_name", &T::class_name, "the class").at_most(128),
        field(5, "model", &T::model, "the model asked for"),
        field(6, "rule", &T::rule, "the policy's rule that made it that class").at_most(256),
        field(7, "snapshot", &T::snapshot, "the version that was in force"),
        field(8, "snapshot_age", &T::snapshot_age, "its age then").unit("s").within(0, 1e9),
        field(9, "policy", &T::policy, "hash of the policy in force"),
        field(10, "table", &T::table, "hash of the fleet table that the rows index"),
        field(11, "engine", &T::engine, "row of the engine that served it"),
        field(12, "engine_name", &T::engine_name, "that engine"),
        field(13, "refused", &T::refused, "why it was refused"),
        field(14, "status", &T::status, "HTTP status of the answer; 0: still open"),
        field(15, "prompt_tokens", &T::prompt_tokens, "estimated").unit("tokens").within(0, 1e9),
        field(16, "output_tokens", &T::output_tokens, "expected, then measured")
            .unit("tokens")
            .within(0, 1e9),
        field(17, "seed", &T::seed,
              "state of the router's generator for this decision: a replay draws the same"),
        field(18, "degraded", &T::degraded, "decided without a fresh plan"),
        field(19, "candidates", &T::candidates, "the engines considered first, then why the others were not")
            .at_most(20'000),
        field(20, "attempts", &T::attempts, "in order").at_most(16),
        field(21, "arrived", &T::arrived, "the router's monotonic time of arrival").unit("s"),
        field(22, "took", &T::took, "arrival to end; 0: still open").unit("s").within(0, 1e6),
        field(23, "continued", &T::continued,
              "times that a stream whose engine broke went on at another engine"),
        field(24, "kept", &T::kept, "how much of it is still known"),
        field(25, "arrived_wall", &T::arrived_wall,
              "wall time of arrival since 1970 by the router's clock; 0: not said")
            .unit("s"),
    };
  }
};

}  // namespace signalbox::schema

template <>
struct signalbox::EnumTable<signalbox::schema::CandidateFate> {
  static constexpr std::array rows{
      EnumRow{"chosen", "least cost of the candidates"},
      EnumRow{"dearer", "a candidate, but another cost less"},
      EnumRow{"not_drawn", "eligible, but neither drawn by weight nor holding the prefix"},
      EnumRow{"not_allowed", "the policy forbids it for this class"},
      EnumRow{"wrong_model", "it does not serve the model"},
      EnumRow{"gone", "its health verdict is gone"},
      EnumRow{"suspect", "its health verdict is suspect"},
      EnumRow{"draining", "it is being drained"},
      EnumRow{"tried", "this request already failed there"},
      EnumRow{"kv_full", "its KV memory would overflow while another's would not"},
      EnumRow{"penalised", "the router's penalty took it out of the draw"},
      EnumRow{"at_limit", "its in-flight limit is reached"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::RecordKept> {
  static constexpr std::array rows{
      EnumRow{"whole", "everything that was noted"},
      EnumRow{
          "filed",
          "from the router's ring file: the chosen candidate and the next best with costs to three digits, "
          "the first and the last attempt; other candidates and the plan's weights are no longer known"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::AttemptEnd> {
  static constexpr std::array rows{
      EnumRow{"open", "not over yet"},
      EnumRow{"succeeded", "answered to the end"},
      EnumRow{"connect_error", "no connection"},
      EnumRow{"reset_before_head", "connection lost before the answer's head"},
      EnumRow{"first_byte_timeout", "no first byte in time"},
      EnumRow{"server_error", "answered 5xx"},
      EnumRow{"overloaded", "answered 429 or 503"},
      EnumRow{"client_error", "answered 4xx: the request's fault, not the engine's"},
      EnumRow{"broken_stream", "died after the first byte"},
      EnumRow{"gap_timeout", "too long between two chunks"},
      EnumRow{"total_timeout", "the request's total time was used up"},
      EnumRow{"client_left", "the client closed the connection"},
      EnumRow{"tls_failed", "no TLS session could be made"},
      EnumRow{"untrusted",
              "the engine's certificate is not the one that the fleet table names; it was sent nothing"},
      EnumRow{"superseded", "another attempt of the same request answered first"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::RefuseReason> {
  static constexpr std::array rows{
      EnumRow{"none", "it was forwarded"},
      EnumRow{"shed_by_plan", "the plan admits only a share of its class"},
      EnumRow{"shed_by_limit", "the router's own limit is reached and its class is shed first"},
      EnumRow{"queue_full", "the waiting room of its class is full"},
      EnumRow{"queue_timeout", "it waited as long as the policy lets it"},
      EnumRow{"no_engine", "no engine of its class is eligible"},
      EnumRow{"no_snapshot", "no snapshot has arrived yet"},
      EnumRow{"deadline_passed", "its deadline passed"},
      EnumRow{"retries_exhausted", "every attempt that the policy allows has failed"},
      EnumRow{"unknown_model", "no catalogue declares its model"},
      EnumRow{"policy_reject", "the policy rejects what no class takes"},
      EnumRow{"draining", "the router is being stopped"},
      EnumRow{"bad_request", "it could not be read"},
  };
};
