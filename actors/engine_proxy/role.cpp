#include "actors/engine_proxy/role.hpp"

#include <fmt/format.h>

#include <chrono>

#include "actors/engine_proxy/access_book.hpp"
#include "actors/engine_proxy/fetcher.hpp"
#include "actors/engine_proxy/listener/kv_listener.hpp"
#include "actors/engine_proxy/machine/machine.hpp"

namespace signalbox::engine_proxy {

namespace {

constexpr Duration scrape_timeout = 1s;

/// Wall seconds outrank any number of lives counted one by one, should what was kept be lost.
Incarnation fresh_incarnation(const kit::Process& process) {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(wall).count()),
          process.incarnation().random};
}

Options options_of(const kit::Process& process, const config::Engine& engine) {
  const config::Profile& profile = process.config().profile_of(engine);
  const double scale = engine.capacity_scale;
  Options out;
  out.engine = engine.name;
  out.cluster = engine.cluster;
  out.kind = engine.kind;
  out.url = engine.url;
  out.metrics_path = engine.metrics_path;
  out.curve = {profile.a / scale, profile.b / scale, profile.k / scale, profile.c / scale, 1.0};
  out.kv_tokens = static_cast<double>(profile.kv_tokens);
  out.max_batch = profile.max_batch;
  out.models = engine.models;
  out.interval = process.config().intervals.scrape;
  out.timeout = scrape_timeout;
  out.kept = process.state().read(Machine::kept_name(engine.name));
  out.fresh = fresh_incarnation(process);
  return out;
}

/// Those that its row names, else its cluster's.
bool cares_for(const kit::Process& process, const config::Engine& engine) {
  const config::Process* row = process.config().find_process(process.id());
  if (!row->engines.empty())
    return std::find(row->engines.begin(), row->engines.end(), engine.name) != row->engines.end();
  return row->cluster == engine.cluster;
}

}  // namespace

Status start(kit::Process& process) {
  auto fetcher = std::make_shared<Fetcher>(Fetcher::Limits{});
  const auto access = AccessBook::follow(process);
  if (!access) return tl::unexpected(access.error());
  std::vector<kit::Teller<Machine>> tellers;
  std::vector<KvSource> sources;
  for (const config::Engine& engine : process.config().engines) {
    if (!cares_for(process, engine)) continue;
    tellers.push_back(process.host<Machine>(
        "engine-proxy " + engine.name.str(),
        [&process, &engine] { return Machine(options_of(process, engine)); },
        [fetcher, access = *access, name = engine.name](const StartScrape& what,
                                                        const kit::Teller<Machine>& tell) {
          fetcher->start(what, access->of(name), [tell](ScrapeResult result) { tell(std::move(result)); });
        }));
    if (!engine.kv_events.empty())
      sources.push_back({engine.kv_events, engine.kv_replay,
                         [tell = tellers.back()](const KvState& state) { tell(CacheHeard{state}); }});
  }
  if (tellers.empty())
    return fail(ErrorKind::not_found, fmt::format("no engine is in the care of '{}'", process.id()),
                process.options().config_file, "give it a cluster that has engines, or name engines");
  if (sources.empty()) return {};
  auto listener = std::make_shared<KvListener>(std::move(sources));
  if (const Status hears = listener->start(); !hears) return hears;
  process.on_stop([listener]() mutable { listener.reset(); });
  return {};
}

}  // namespace signalbox::engine_proxy
