#include "actors/kit/fleet/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace signalbox::kit {

schema::FleetTable fleet_table(const config::Config& config) {
  schema::FleetTable out;
  out.fleet = config.fleet;
  out.epoch = config.fleet_epoch;
  for (const auto& c : config.clusters) out.clusters.push_back({c.name, c.region, c.zone});
  for (const auto& e : config.engines) {
    const config::Profile& profile = config.profile_of(e);
    schema::EngineRow row;
    row.name = e.name;
    row.cluster = find_cluster(out, e.cluster).value_or(ClusterIndex());
    row.rack = e.rack;
    row.url = e.url;
    row.kind = e.kind;
    row.models = e.models;
    row.tls_identity = e.tls_identity;
    row.step_s = profile.a / e.capacity_scale;
    row.per_sequence_s = profile.b / e.capacity_scale;
    row.per_context_token_s = profile.k / e.capacity_scale;
    row.per_prefill_token_s = profile.c / e.capacity_scale;
    row.kv_tokens = static_cast<double>(profile.kv_tokens);
    row.max_batch = profile.max_batch;
    out.engines.push_back(std::move(row));
  }
  for (const auto& link : config.links) {
    const auto from = find_cluster(out, link.from), to = find_cluster(out, link.to);
    if (from && to) out.links.push_back({*from, *to, to_seconds(link.rtt)});
  }
  out.content = content_of(out);
  return out;
}

Digest content_of(const schema::FleetTable& table) {
  std::string text;
  const auto add = [&text](const auto&... parts) { ((text += fmt::format("{}\x1f", parts)), ...); };
  for (const auto& c : table.clusters) add("cluster", c.name, c.region, c.zone);
  for (const auto& e : table.engines) {
    add("engine", e.name, e.cluster.value, e.rack, e.url, static_cast<unsigned>(e.kind), e.tls_identity,
        e.step_s, e.per_sequence_s, e.per_context_token_s, e.per_prefill_token_s, e.kv_tokens, e.max_batch);
    for (const auto& m : e.models) add(m);
  }
  for (const auto& l : table.links) add("link", l.from.value, l.to.value, l.rtt_s);
  return digest_of(text);
}

Status check_table(const schema::FleetTable& table) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < table.engines.size(); ++i) {
    const auto& e = table.engines[i];
    const std::string where = fmt::format("engines[{}]", i);
    if (e.name.empty() || !names.insert(e.name.str()).second)
      return invalid("no name, or one that is there", where);
    if (e.cluster.at() >= table.clusters.size()) return invalid("its cluster is no row of the table", where);
  }
  for (std::size_t i = 0; i < table.links.size(); ++i)
    if (table.links[i].from.at() >= table.clusters.size() || table.links[i].to.at() >= table.clusters.size())
      return invalid("a cluster of it is no row of the table", fmt::format("links[{}]", i));
  if (content_of(table) != table.content)
    return fail(ErrorKind::conflict, "its content is not what its hash says");
  return {};
}

std::optional<EngineIndex> find_engine(const schema::FleetTable& table, const EngineName& name) {
  for (std::size_t i = 0; i < table.engines.size(); ++i)
    if (table.engines[i].name == name) return EngineIndex(i);
  return std::nullopt;
}

std::optional<ClusterIndex> find_cluster(const schema::FleetTable& table, const ClusterName& name) {
  for (std::size_t i = 0; i < table.clusters.size(); ++i)
    if (table.clusters[i].name == name) return ClusterIndex(i);
  return std::nullopt;
}

Fit fit_of(const schema::FleetTable& table, const policy::CompiledPolicy& policy, ClassIndex c,
           EngineIndex e) {
  const schema::EngineRow& engine = table.engines[e.at()];
  const ModelName& model = policy.at(policy.at(c).model).name;
  if (std::find(engine.models.begin(), engine.models.end(), model) == engine.models.end())
    return Fit::wrong_model;
  const schema::ClusterRow& cluster = table.clusters[engine.cluster.at()];
  const policy::DomainPath path{engine.rack.str(), cluster.name.str(), cluster.region.str(),
                                cluster.zone.str()};
  return policy.allows(c, path) ? Fit::fits : Fit::not_allowed;
}

std::vector<EngineIndex> allowed_engines(const schema::FleetTable& table,
                                         const policy::CompiledPolicy& policy, ClassIndex c) {
  std::vector<EngineIndex> out;
  for (std::size_t e = 0; e < table.engines.size(); ++e)
    if (fit_of(table, policy, c, EngineIndex(e)) == Fit::fits) out.emplace_back(e);
  return out;
}

schema::Bytes as_bitmap(const std::vector<EngineIndex>& engines, std::size_t fleet_size) {
  schema::Bytes out((fleet_size + 7) / 8);
  for (const EngineIndex e : engines)
    out[e.at() / 8] = static_cast<std::uint8_t>(out[e.at() / 8] | 1u << e.at() % 8);
  return out;
}

std::vector<double> round_trips_s(const schema::FleetTable& table, ClusterIndex from, double absent) {
  std::vector<double> out(table.clusters.size(), absent);
  if (from.at() < out.size()) out[from.at()] = 0;
  for (const auto& link : table.links)
    if (link.from == from && link.to.at() < out.size()) out[link.to.at()] = link.rtt_s;
  return out;
}

}  // namespace signalbox::kit
