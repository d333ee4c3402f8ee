#include "tools/launcher/machine/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace signalbox::launcher {
namespace {

Stage stage_of(std::string_view role) {
  if (role == "policy-keeper") return Stage::policy;
  if (role == "global-optimizer" || role == "feedback-balancer") return Stage::optimizers;
  if (role == "cluster-router") return Stage::routers;
  return Stage::observers;
}

std::string host_port(std::string_view url) {
  const std::size_t scheme = url.find("://");
  return std::string(scheme == std::string_view::npos ? url : url.substr(scheme + 3));
}

PlannedProcess run(const std::string& role, const ProcessName& id, Stage stage, const std::string& serves,
                   const std::vector<std::string>& common) {
  PlannedProcess process{id.str(), role, stage, {"run", role, "--id", id.str()}, serves, true};
  process.arguments.insert(process.arguments.end(), common.begin(), common.end());
  return process;
}

PlannedProcess simulated(const config::Config& config, const config::Engine& engine) {
  const config::Simulated& simulated = *engine.simulated;
  const config::Profile& profile = config.profile_of(engine);
  const std::uint64_t kv_tokens = simulated.kv_tokens != 0 ? simulated.kv_tokens : profile.kv_tokens;
  PlannedProcess process{engine.name.str(), "engine-sim",          Stage::engines,
                         {"engine-sim"},    host_port(engine.url), false};
  const auto add = [&](std::string_view option, const auto& value) {
    process.arguments.push_back(fmt::format("--{}", option));
    process.arguments.push_back(fmt::format("{}", value));
  };
  add("listen", process.serves);
  add("name", engine.name);
  std::string models;
  for (const ModelName& model : engine.models) models += (models.empty() ? "" : ",") + model.str();
  add("models", models);
  add("a", profile.a);
  add("b", profile.b);
  add("k", profile.k);
  add("c", profile.c);
  add("speed", simulated.speed);
  add("kv-tokens", kv_tokens);
  add("max-batch", profile.max_batch);
  add("step-tokens", profile.prefill_chunk);
  add("seed", simulated.seed);
  if (!engine.kv_events.empty()) add("kv-events", engine.kv_events);
  if (!engine.kv_replay.empty()) add("kv-replay", engine.kv_replay);
  if (!simulated.tls_certificate.empty()) {
    add("tls-certificate", simulated.tls_certificate);
    add("tls-key", simulated.tls_key);
  }
  return process;
}

}  // namespace

std::vector<std::string> common_arguments(const config::Config& config, const std::string& file) {
  return {"--config",       file,         "--port-base",  fmt::format("{}", config.port_base), "--state-dir",
          config.state_dir, "--keys-dir", config.keys_dir};
}

std::vector<PlannedProcess> plan_processes(const config::Config& config, const std::string& file) {
  const std::vector<std::string> common = common_arguments(config, file);
  std::vector<PlannedProcess> out;
  for (const config::Bus& bus : config.buses)
    out.push_back(run("forwarder", bus.id, Stage::bus, bus.subscribe, common));
  for (const config::Engine& engine : config.engines)
    if (engine.simulated) out.push_back(simulated(config, engine));
  for (const config::Process& process : config.processes)
    out.push_back(run(process.role, process.id, stage_of(process.role), process.listen, common));
  std::stable_sort(out.begin(), out.end(),
                   [](const PlannedProcess& a, const PlannedProcess& b) { return a.stage < b.stage; });
  return out;
}

}  // namespace signalbox::launcher
