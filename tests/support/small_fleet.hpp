// A small fleet for tests of roles: two clusters 30 ms apart, engines a and b in the east, c in the west, one model.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "actors/kit/fleet/table.hpp"
#include "cluster-config/policy/compile.hpp"

namespace signalbox::tests {

inline schema::FleetTable small_table() {
  schema::FleetTable out;
  out.fleet = "small";
  out.clusters = {{ClusterName("east"), DomainName("us"), DomainName("z")},
                  {ClusterName("west"), DomainName("eu"), DomainName("z")}};
  const auto engine = [](std::string_view name, std::size_t cluster, double slower) {
    schema::EngineRow row;
    row.name = EngineName(name);
    row.cluster = ClusterIndex(cluster);
    row.rack = DomainName(name);
    row.url = "http://127.0.0.1:1";
    row.kind = EngineKind::sim;
    row.models = {ModelName("m")};
    row.step_s = 0.02 * slower;
    row.per_sequence_s = 0.001 * slower;
    row.per_prefill_token_s = 1e-4 * slower;
    row.kv_tokens = 100'000;
    row.max_batch = 32;
    return row;
  };
  out.engines = {engine("a", 0, 1), engine("b", 0, 1), engine("c", 1, 1)};
  out.links = {{ClusterIndex(0), ClusterIndex(1), 0.03}, {ClusterIndex(1), ClusterIndex(0), 0.03}};
  out.content = kit::content_of(out);
  return out;
}

inline std::string small_policy_text(int version = 1) {
  return "policy small version " + std::to_string(version) +
         "\nmodels { m versions 1.0 }\n"
         "class chat { tenants acme  model m  criticality critical  residency any }\n"
         "class batch { tenants *  model m  criticality sheddable  residency any }\n"
         "otherwise reject 403\n";
}

inline policy::CompiledPolicy small_policy(int version = 1) {
  auto out = policy::compile_text(small_policy_text(version), "small.policy");
  if (!out) throw std::runtime_error(out.error().text());
  return *std::move(out);
}

/// A text as one word of a scenario.
inline std::string quoted(std::string text) {
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n')) text.replace(at, 1, "\\n");
  return '"' + text + '"';
}

/// $policy1, $policy2 (hashes), $text1, $text2 and $table for scenarios.
inline std::map<std::string, std::string> small_words() {
  return {{"policy2", small_policy(2).hash.hex()},
          {"policy1", small_policy().hash.hex()},
          {"text2", quoted(small_policy_text(2))},
          {"text1", quoted(small_policy_text())},
          {"table", small_table().content.hex()}};
}

}  // namespace signalbox::tests
