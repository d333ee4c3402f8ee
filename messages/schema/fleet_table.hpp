// Who belongs to the fleet.
#pragma once

#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// A CPU cluster: a place where requests enter.
struct ClusterRow {
  ClusterName name;
  DomainName region;
  DomainName zone;
  static constexpr auto fields() {
    using T = ClusterRow;
    return std::tuple{field(1, "name", &T::name, "the cluster"), field(2, "region", &T::region, "its region"),
                      field(3, "zone", &T::zone, "its zone, for residency")};
  }
};

/// An engine as the fleet table declares it; its position in the table is its EngineIndex.
struct EngineRow {
  EngineName name;
  ClusterIndex cluster;
  DomainName rack;
  std::string url;
  EngineKind kind = EngineKind::openai;
  std::vector<ModelName> models;
  std::string tls_identity;
  double step_s = 0;
  double per_sequence_s = 0;
  double per_context_token_s = 0;
  double per_prefill_token_s = 0;
  double kv_tokens = 0;
  double max_batch = 0;

  static constexpr auto fields() {
    using T = EngineRow;
    return std::tuple{
        field(1, "name", &T::name, "the engine"),
        field(2, "cluster", &T::cluster, "row of its cluster"),
        field(3, "rack", &T::rack, "its rack"),
        field(4, "url", &T::url, "where it listens, as http://host:port or https://host:port").at_most(256),
        field(5, "kind", &T::kind, "the interface that it speaks"),
        field(6, "models", &T::models, "the models that it serves").at_most(256),
        field(7, "tls_identity", &T::tls_identity,
              "what its certificate must be: name:HOST, or sha256:HEX[,HEX]; empty: no TLS")
            .at_most(256),
        field(8, "step_s", &T::step_s, "a of the declared curve").unit("s").within(0, 100),
        field(9, "per_sequence_s", &T::per_sequence_s, "b of the declared curve").unit("s").within(0, 10),
        field(10, "per_context_token_s", &T::per_context_token_s, "k of the declared curve")
            .unit("s")
            .within(0, 1),
        field(11, "per_prefill_token_s", &T::per_prefill_token_s, "c of the declared curve")
            .unit("s")
            .within(0, 1),
        field(12, "kv_tokens", &T::kv_tokens, "size of its KV memory").unit("tokens").within(0, 1e12),
        field(13, "max_batch", &T::max_batch, "most sequences in a step").unit("requests").within(0, 1e6),
    };
  }
};

/// The declared round trip from one cluster to another.
struct LinkRow {
  static constexpr bool columnar = true;
  ClusterIndex from;
  ClusterIndex to;
  double rtt_s = 0;
  static constexpr auto fields() {
    using T = LinkRow;
    return std::tuple{field(1, "from", &T::from, "row of the cluster where requests enter"),
                      field(2, "to", &T::to, "row of the cluster of the engine"),
                      field(3, "rtt_s", &T::rtt_s, "round trip").unit("s").within(0, 100)};
  }
};

/// Membership, addresses and regions. Signed; nothing else may say these.
struct FleetTable {
  static constexpr MessageInfo info{
      20,
      1,
      "fleet_table",
      "fleet/<optimizer>/",
      "which clusters and engines there are, where, and what they were declared to do",
      {Role::global_optimizer, Role::feedback_balancer},
      Protection::signature,
      24h,
      8 << 20};

  std::string fleet;
  std::uint64_t epoch = 0;
  Digest content;
  std::vector<ClusterRow> clusters;
  std::vector<EngineRow> engines;
  std::vector<LinkRow> links;

  static constexpr auto fields() {
    using T = FleetTable;
    return std::tuple{
        field(1, "fleet", &T::fleet, "the fleet's name").at_most(64),
        field(2, "epoch", &T::epoch, "raised by operators to outrank every term before"),
        field(3, "content", &T::content, "hash of the rows below: what snapshots refer to"),
        field(4, "clusters", &T::clusters, "the clusters").at_most(1000),
        field(5, "engines", &T::engines, "the engines").at_most(20'000),
        field(6, "links", &T::links, "round trips between clusters").at_most(1'000'000),
    };
  }
};

}  // namespace signalbox::schema
