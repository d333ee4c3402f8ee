#include "actors/engine_proxy/access_book.hpp"

#include "cluster-config/load/load.hpp"

namespace signalbox::engine_proxy {

Result<std::shared_ptr<AccessBook>> AccessBook::follow(kit::Process& process) {
  auto out = std::make_shared<AccessBook>();
  if (auto loaded = out->load(process.config().engines); !loaded)
    return tl::unexpected(std::move(loaded.error()));
  process.on_reload([&process, out] {
    if (const auto loaded = out->load(process.config().engines); !loaded)
      process.log(schema::Severity::critical, "access_not_reloaded", loaded.error().text());
  });
  return out;
}

Fetcher::Access AccessBook::of(const EngineName& engine) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_engine_.find(engine);
  return found == by_engine_.end() ? Fetcher::Access{} : found->second;
}

Status AccessBook::load(const std::vector<config::Engine>& engines) {
  Status out;
  net::TlsTrust trust;
  for (const config::Engine& engine : engines) {
    auto client = trust.client_for(engine.url, engine.tls_identity, engine.tls_authorities);
    auto key =
        engine.api_key_file.empty() ? Result<std::string>() : config::read_secret_line(engine.api_key_file);
    for (auto* error : {client ? nullptr : &client.error(), key ? nullptr : &key.error()})
      if (error && out) out = tl::unexpected(std::move(*error).within(engine.name.str()));
    const std::lock_guard lock(mutex_);
    if (client) by_engine_[engine.name].trust = *std::move(client);
    if (key) by_engine_[engine.name].api_key = *std::move(key);
  }
  return out;
}

}  // namespace signalbox::engine_proxy
