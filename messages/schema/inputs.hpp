// Everything that one decision read: enough to decide again, elsewhere and later, and get the same answer bit for bit.
#pragma once

#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::schema {

/// What a decision read of one engine that may get requests of its class. A negative number is "not known".
struct InputRow {
  static constexpr bool columnar = true;
  EngineIndex engine;
  double planned_weight = 0;
  double spread_weight = 0;
  double step_s = 0;
  double per_sequence_s = 0;
  double per_context_token_s = 0;
  double per_prefill_token_s = 0;
  double max_batch = 0;
  double kv_tokens = 0;
  double network_s = 0;
  double plan_price = -1;
  Duration described_at{};
  double requests = -1;
  double waiting = -1;
  double kv_used = -1;
  std::uint64_t in_flight_cap = 0;
  std::uint64_t own_requests = 0;
  std::uint64_t own_prefill_tokens = 0;
  std::uint64_t own_kv_tokens = 0;
  std::uint64_t then_requests = 0;
  std::uint64_t then_prefill_tokens = 0;
  std::uint64_t then_kv_tokens = 0;
  double penalty = 1;
  std::uint64_t matched_blocks = 0;
  std::uint16_t holder = 0;
  bool tried = false;
  bool eligible = true;
  static constexpr auto fields() {
    using T = InputRow;
    return std::tuple{
        field(1, "engine", &T::engine, "row of the engine"),
        field(2, "planned_weight", &T::planned_weight, "its weight in the plan").within(0, 1),
        field(3, "spread_weight", &T::spread_weight, "its weight where there is no plan").within(0, 1e6),
        field(4, "step_s", &T::step_s, "a, times its slowness").unit("s").within(0, 1e4),
        field(5, "per_sequence_s", &T::per_sequence_s, "b, times its slowness").unit("s").within(0, 1e4),
        field(6, "per_context_token_s", &T::per_context_token_s, "k, times its slowness")
            .unit("s")
            .within(0, 1e4),
        field(7, "per_prefill_token_s", &T::per_prefill_token_s, "c, times its slowness")
            .unit("s")
            .within(0, 1e4),
        field(8, "max_batch", &T::max_batch, "most sequences in a step; 0: not known")
            .unit("requests")
            .within(0, 1e7),
        field(9, "kv_tokens", &T::kv_tokens, "size of its KV memory; 0: not known")
            .unit("tokens")
            .within(0, 1e12),
        field(10, "network_s", &T::network_s, "round trip, and what leaving the region costs by the policy")
            .unit("s")
            .within(0, 1e6),
        field(11, "plan_price", &T::plan_price, "requests that one more second of work delays, by the plan")
            .unit("requests")
            .within(-1, 1e12),
        field(12, "described_at", &T::described_at,
              "what the reading below describes, by the router's clock; negative: no reading")
            .unit("s"),
        field(13, "requests", &T::requests, "there, by the reading").unit("requests").within(-1, 1e9),
        field(14, "waiting", &T::waiting, "of these, waiting").unit("requests").within(-1, 1e9),
        field(15, "kv_used", &T::kv_used, "KV memory in use, by the reading").unit("tokens").within(-1, 1e12),
        field(16, "in_flight_cap", &T::in_flight_cap, "most requests of this router there").unit("requests"),
        field(17, "own_requests", &T::own_requests, "in flight from this router").unit("requests"),
        field(18, "own_prefill_tokens", &T::own_prefill_tokens, "of these, prompt tokens not yet read")
            .unit("tokens"),
        field(19, "own_kv_tokens", &T::own_kv_tokens, "of these, tokens that they will hold").unit("tokens"),
        field(20, "then_requests", &T::then_requests, "the same at the time of the reading").unit("requests"),
        field(21, "then_prefill_tokens", &T::then_prefill_tokens, "the same at the time of the reading")
            .unit("tokens"),
        field(22, "then_kv_tokens", &T::then_kv_tokens, "the same at the time of the reading").unit("tokens"),
        field(23, "penalty", &T::penalty, "the router's own multiplier on its weight").within(0, 1),
        field(24, "matched_blocks", &T::matched_blocks,
              "leading blocks of the prompt believed to be in its cache"),
        field(25, "holder", &T::holder,
              "its place among those that hold most of the prompt, from 1; 0: none"),
        field(26, "tried", &T::tried, "this request already failed there"),
        field(27, "eligible", &T::eligible,
              "it may get new requests; else it only keeps this request's state")};
  }
};

/// One decision of one request (a retry decides again): what was read, and what came of it.
struct DecisionInputs {
  static constexpr MessageInfo info{34,
                                    1,
                                    "decision_inputs",
                                    "inputs/<cluster>/<router>/",
                                    "everything that one decision read, so that it can be decided again",
                                    {Role::cluster_router},
                                    Protection::mac,
                                    0s,
                                    4 << 20};

  ClusterName cluster;
  std::string decision;
  std::uint16_t attempt = 0;
  ClassIndex request_class;
  std::string class_name;
  Criticality criticality = Criticality::standard;
  Digest policy;
  Digest table;
  SnapshotVersion snapshot;
  Duration decided_at{};
  std::uint64_t seed = 0;
  bool plan_in_force = false;
  Duration plan_as_of{};
  std::uint32_t routers = 1;
  double prompt_tokens = 0;
  double output_tokens = 1;
  double context_tokens = 0;
  double uncached_tokens = 0;
  double block_tokens = 0;
  std::uint32_t blocks = 0;
  std::uint32_t longest_blocks = 0;
  EngineIndex home;
  EngineIndex pinned;
  std::vector<InputRow> engines;
  EngineIndex chosen;
  std::vector<CandidateRow> candidates;

  static constexpr auto fields() {
    using T = DecisionInputs;
    return std::tuple{
        field(1, "cluster", &T::cluster, "the router's cluster"),
        field(2, "decision", &T::decision, "its id").at_most(64),
        field(3, "attempt", &T::attempt, "which one of the request, from 0"),
        field(4, "class", &T::request_class, "row of the class"),
        field(5, "class_name", &T::class_name, "the class").at_most(128),
        field(6, "policy", &T::policy, "hash of the policy in force: its constants were used"),
        field(7, "table", &T::table, "hash of the fleet table that the rows index"),
        field(8, "snapshot", &T::snapshot, "the version that was in force"),
        field(9, "decided_at", &T::decided_at, "by the router's monotonic clock").unit("s"),
        field(10, "seed", &T::seed, "of the generator that drew"),
        field(11, "plan_in_force", &T::plan_in_force, "the plan was there and young enough to be followed"),
        field(12, "routers", &T::routers, "that send to these engines, this one included"),
        field(13, "prompt_tokens", &T::prompt_tokens, "of the request").unit("tokens").within(0, 1e9),
        field(14, "output_tokens", &T::output_tokens, "expected of it").unit("tokens").within(0, 1e9),
        field(15, "context_tokens", &T::context_tokens, "mean of its class while decoding")
            .unit("tokens")
            .within(0, 1e9),
        field(16, "uncached_tokens", &T::uncached_tokens, "mean of its class").unit("tokens").within(0, 1e9),
        field(17, "block_tokens", &T::block_tokens, "of one prompt block").unit("tokens").within(0, 1e9),
        field(18, "blocks", &T::blocks, "of its prompt"),
        field(19, "longest_blocks", &T::longest_blocks,
              "the longest part of it that an engine is known to hold"),
        field(20, "home", &T::home, "served this session before"),
        field(21, "pinned", &T::pinned, "keeps this request's state"),
        field(22, "engines", &T::engines, "that may get requests of this class").at_most(20'000),
        field(23, "chosen", &T::chosen, "what was chosen"),
        field(24, "candidates", &T::candidates, "as they were compared").at_most(16),
        field(25, "criticality", &T::criticality, "how much it matters"),
        field(26, "plan_as_of", &T::plan_as_of, "what the plan knows is of this time, by the same clock")
            .unit("s")};
  }
};

}  // namespace signalbox::schema
