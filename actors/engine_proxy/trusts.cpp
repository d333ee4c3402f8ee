#include "actors/engine_proxy/trusts.hpp"

namespace signalbox::engine_proxy {

Result<std::shared_ptr<Trusts>> Trusts::follow(kit::Process& process) {
  auto out = std::make_shared<Trusts>();
  if (auto loaded = out->load(process.config().engines); !loaded)
    return tl::unexpected(std::move(loaded.error()));
  process.on_reload([&process, out] {
    if (const auto loaded = out->load(process.config().engines); !loaded)
      process.log(schema::Severity::critical, "tls_not_reloaded", loaded.error().text());
  });
  return out;
}

Fetcher::Trust Trusts::of(const EngineName& engine) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_engine_.find(engine);
  return found == by_engine_.end() ? nullptr : found->second;
}

Status Trusts::load(const std::vector<config::Engine>& engines) {
  Status out;
  net::TlsTrust trust;
  for (const config::Engine& engine : engines) {
    auto client = trust.client_for(engine.url, engine.tls_identity, engine.tls_authorities);
    const std::lock_guard lock(mutex_);
    if (client)
      by_engine_[engine.name] = *std::move(client);
    else if (out)
      out = tl::unexpected(std::move(client.error()).within(engine.name.str()));
  }
  return out;
}

}  // namespace signalbox::engine_proxy
