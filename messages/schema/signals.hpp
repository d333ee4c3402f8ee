// What engine-proxies say about engines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// Why a reading of an engine failed, or that it did not.
enum class ScrapeState : std::uint8_t { ok, unreachable, timed_out, refused, malformed };

/// A measured fact of an engine. What the engine does not say is absent, never zero.
struct EngineSignal {
  static constexpr MessageInfo info{1,
                                    2,
                                    "engine_signal",
                                    "signal/<cluster>/<engine>/",
                                    "what one engine's own interface says of its load, and how old that is",
                                    {Role::engine_proxy},
                                    Protection::mac,
                                    10s,
                                    4096};

  ClusterName cluster;
  EngineName engine;
  Incarnation incarnation;
  ScrapeState scrape = ScrapeState::ok;
  Duration reading_age{};
  std::optional<double> running;
  std::optional<double> waiting;
  std::optional<double> kv_usage;
  std::optional<double> kv_capacity_tokens;
  std::optional<double> block_tokens;
  std::optional<double> prompt_tokens_total;
  std::optional<double> cached_tokens_total;
  std::optional<double> output_tokens_total;
  std::optional<double> requests_total;
  std::optional<double> preemptions_total;
  std::optional<double> tpot_s;
  std::optional<double> ttft_s;
  double slowness = 1.0;
  std::uint64_t slowness_samples = 0;
  std::string names_matched;
  std::uint64_t readings = 0;
  std::uint64_t failed_readings = 0;
  std::uint64_t curve = 0;
  std::uint64_t refused_readings = 0;

  static constexpr auto fields() {
    using T = EngineSignal;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the engine's cluster"),
        field(2, "engine", &T::engine, "the engine"),
        field(3, "incarnation", &T::incarnation, "which life of the engine"),
        field(4, "scrape", &T::scrape, "how the last reading went; the facts below are of the last good one"),
        field(5, "reading_age", &T::reading_age, "age of the last good reading when this was sent")
            .unit("s")
            .within(0, 1e9),
        field(6, "running", &T::running, "requests in the batch").unit("requests").within(0, 1e7),
        field(7, "waiting", &T::waiting, "requests waiting for the batch").unit("requests").within(0, 1e7),
        field(8, "kv_usage", &T::kv_usage, "share of the KV memory in use").unit("share").within(0, 1.5),
        field(9, "kv_capacity_tokens", &T::kv_capacity_tokens, "size of the KV memory")
            .unit("tokens")
            .within(0, 1e12),
        field(10, "block_tokens", &T::block_tokens, "size of a KV block").unit("tokens").within(0, 1e6),
        field(11, "prompt_tokens_total", &T::prompt_tokens_total, "prompt tokens since its start")
            .unit("tokens")
            .within(0, 1e18),
        field(12, "cached_tokens_total", &T::cached_tokens_total, "of these, tokens found in its cache")
            .unit("tokens")
            .within(0, 1e18),
        field(13, "output_tokens_total", &T::output_tokens_total, "tokens generated since its start")
            .unit("tokens")
            .within(0, 1e18),
        field(14, "requests_total", &T::requests_total, "requests finished since its start")
            .unit("requests")
            .within(0, 1e18),
        field(15, "preemptions_total", &T::preemptions_total, "requests put back for want of KV memory")
            .unit("requests")
            .within(0, 1e18),
        field(16, "tpot_s", &T::tpot_s, "time per output token over the last readings")
            .unit("s")
            .within(0, 1e4),
        field(17, "ttft_s", &T::ttft_s, "time to first token over the last readings")
            .unit("s")
            .within(0, 1e5),
        field(18, "slowness", &T::slowness,
              "measured over predicted time per output token by the curve in force, smoothed and bounded")
            .unit("ratio")
            .within(0.05, 100),
        field(19, "slowness_samples", &T::slowness_samples,
              "readings behind the slowness; 0: it is the prior"),
        field(20, "names_matched", &T::names_matched,
              "the metric names that were found, so that a rename shows")
            .at_most(2048),
        field(21, "readings", &T::readings, "good readings since this proxy started"),
        field(22, "failed_readings", &T::failed_readings, "failed readings since the last good one"),
        field(23, "curve", &T::curve,
              "number of the engine_profile's curve that the slowness is relative to"),
        field(24, "refused_readings", &T::refused_readings,
              "readings that the curve did not learn from: too far apart, or numbers that contradict each "
              "other"),
    };
  }
};

/// The service curve of one engine as its proxy believes it: step time = slowness * (a + b*batch + k*context
/// + c*prefill).
struct EngineProfile {
  static constexpr MessageInfo info{
      2,
      2,
      "engine_profile",
      "profile/<cluster>/<engine>/",
      "the service curve of one engine: declared, then corrected by what was measured",
      {Role::engine_proxy},
      Protection::mac,
      10min,
      2048};

  ClusterName cluster;
  EngineName engine;
  Incarnation incarnation;
  double step_s = 0;
  double per_sequence_s = 0;
  double per_context_token_s = 0;
  double per_prefill_token_s = 0;
  double kv_tokens = 0;
  double max_batch = 0;
  std::vector<ModelName> models;
  std::uint64_t samples = 0;
  std::vector<double> variance;
  std::uint64_t curve = 0;
  double slowness = 1;
  std::vector<double> covariance;
  double least_batch = 0;
  double most_batch = 0;

  static constexpr auto fields() {
    using T = EngineProfile;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the engine's cluster"),
        field(2, "engine", &T::engine, "the engine"),
        field(3, "incarnation", &T::incarnation, "which life of the engine"),
        field(4, "step_s", &T::step_s, "a: time of an empty step").unit("s").within(0, 100),
        field(5, "per_sequence_s", &T::per_sequence_s, "b: added by each sequence of the batch")
            .unit("s")
            .within(0, 10),
        field(6, "per_context_token_s", &T::per_context_token_s, "k: added by each token of context")
            .unit("s")
            .within(0, 1),
        field(7, "per_prefill_token_s", &T::per_prefill_token_s,
              "c: added by each prompt token that the cache misses")
            .unit("s")
            .within(0, 1),
        field(8, "kv_tokens", &T::kv_tokens, "size of the KV memory").unit("tokens").within(0, 1e12),
        field(9, "max_batch", &T::max_batch, "most sequences in a step").unit("requests").within(0, 1e6),
        field(10, "models", &T::models, "the models that it says it serves").at_most(256),
        field(11, "samples", &T::samples, "observations behind the curve; 0: as declared"),
        field(12, "variance", &T::variance, "variances of the logarithms of a, b, k, c; empty: not fitted")
            .at_most(4),
        field(13, "curve", &T::curve, "counts up with each curve of this engine; 0: as declared"),
        field(14, "slowness", &T::slowness, "the slowness when this was sent, relative to this curve")
            .unit("ratio")
            .within(0.05, 100),
        field(15, "covariance", &T::covariance,
              "of the logarithms of a, b, k, c: the upper triangle by rows; empty: not fitted")
            .at_most(10),
        field(16, "least_batch", &T::least_batch, "least batch that the curve was fitted on")
            .unit("requests")
            .within(0, 1e6),
        field(17, "most_batch", &T::most_batch, "greatest batch that the curve was fitted on")
            .unit("requests")
            .within(0, 1e6),
    };
  }
};

/// How much of an engine's cache is known.
enum class CacheKnowledge : std::uint8_t { unknown, partial, complete };

/// What an engine's own KV events say of its prefix cache. Totals and no list of blocks: the engine's hashes are over tokens,
/// which routers do not have.
struct CacheDigest {
  static constexpr MessageInfo info{
      3,
      2,
      "cache_digest",
      "cache/<cluster>/<engine>/",
      "how much an engine's prefix cache holds and how often it was emptied, by its own events",
      {Role::engine_proxy},
      Protection::mac,
      60s,
      1024};

  ClusterName cluster;
  EngineName engine;
  Incarnation incarnation;
  CacheKnowledge knowledge = CacheKnowledge::unknown;
  double block_tokens = 0;
  std::uint64_t events_skipped = 0;
  std::uint64_t clears = 0;
  std::uint64_t held_blocks = 0;
  std::uint64_t stored_total = 0;
  std::uint64_t removed_total = 0;
  std::uint64_t batches = 0;
  std::uint64_t batches_missed = 0;
  std::uint64_t batches_replayed = 0;
  std::uint64_t batches_unreadable = 0;

  static constexpr auto fields() {
    using T = CacheDigest;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the engine's cluster"),
        field(2, "engine", &T::engine, "the engine"),
        field(3, "incarnation", &T::incarnation, "which life of the engine"),
        field(4, "knowledge", &T::knowledge, "how much of the cache these events cover"),
        field(6, "block_tokens", &T::block_tokens, "tokens of a block").unit("tokens").within(0, 1e6),
        field(9, "events_skipped", &T::events_skipped, "events that could not be read; their batches count"),
        field(10, "clears", &T::clears,
              "times that the cache was emptied, or may have been, since the proxy started"),
        field(11, "held_blocks", &T::held_blocks, "blocks that it holds now, as far as is known")
            .unit("blocks"),
        field(12, "stored_total", &T::stored_total, "blocks stored, as far as was heard").unit("blocks"),
        field(13, "removed_total", &T::removed_total, "blocks dropped, as far as was heard").unit("blocks"),
        field(14, "batches", &T::batches, "batches of events taken, replayed ones included"),
        field(15, "batches_missed", &T::batches_missed, "batches that were lost and could not be replayed"),
        field(16, "batches_replayed", &T::batches_replayed, "batches that the engine sent again when asked"),
        field(17, "batches_unreadable", &T::batches_unreadable, "batches that could not be read at all"),
    };
  }
};

/// An engine was taken out of its proxy's care; nothing further is said of it.
struct EngineFarewell {
  static constexpr MessageInfo info{4,
                                    1,
                                    "engine_farewell",
                                    "farewell/<cluster>/<engine>/",
                                    "a proxy stops speaking for an engine, and why",
                                    {Role::engine_proxy},
                                    Protection::mac,
                                    1min,
                                    1024};

  ClusterName cluster;
  EngineName engine;
  Incarnation incarnation;
  std::string reason;

  static constexpr auto fields() {
    using T = EngineFarewell;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the engine's cluster"),
        field(2, "engine", &T::engine, "the engine"),
        field(3, "incarnation", &T::incarnation, "which life of the engine"),
        field(4, "reason", &T::reason, "why").at_most(256),
    };
  }
};

}  // namespace signalbox::schema

template <>
struct signalbox::EnumTable<signalbox::schema::ScrapeState> {
  static constexpr std::array rows{
      EnumRow{"ok", "the engine answered"},
      EnumRow{"unreachable", "no connection to the engine"},
      EnumRow{"timed_out", "the engine did not answer in time"},
      EnumRow{"refused", "the engine answered with an error status"},
      EnumRow{"malformed", "the answer could not be read"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::CacheKnowledge> {
  static constexpr std::array rows{
      EnumRow{"unknown", "the engine does not say what it holds"},
      EnumRow{"partial", "some events were missed"},
      EnumRow{"complete", "every event since the cache was empty was seen"},
  };
};
