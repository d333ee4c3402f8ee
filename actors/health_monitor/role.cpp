#include "actors/health_monitor/role.hpp"

#include "actors/engine_proxy/access_book.hpp"
#include "actors/engine_proxy/fetcher.hpp"
#include "actors/health_monitor/machine/machine.hpp"

namespace signalbox::health_monitor {

namespace {

constexpr engine_proxy::Fetcher::Limits probe_limits{64, 64u << 10};

ProbeFault fault_of(engine_proxy::FetchFault fault) {
  switch (fault) {
    case engine_proxy::FetchFault::none: return ProbeFault::none;
    case engine_proxy::FetchFault::untrusted:
    case engine_proxy::FetchFault::unreachable: return ProbeFault::unreachable;
    case engine_proxy::FetchFault::timed_out: return ProbeFault::timed_out;
    case engine_proxy::FetchFault::malformed: return ProbeFault::malformed;
  }
  return ProbeFault::malformed;
}

}  // namespace

Status start(kit::Process& process) {
  auto fetcher = std::make_shared<engine_proxy::Fetcher>(probe_limits);
  const auto access = engine_proxy::AccessBook::follow(process);
  if (!access) return tl::unexpected(access.error());
  process.host<Machine>(
      "health-monitor",
      [&process] {
        Options options;
        options.id = process.id();
        options.table = kit::fleet_table(process.config());
        options.hush = hush_beats * process.config().intervals.beat;
        return Machine(std::move(options));
      },
      [fetcher, access = *access, &process](const Probe& probe, const kit::Teller<Machine>& tell) {
        fetcher->start({probe.number, 0, probe.url, probe.timeout, probe.post},
                       access->of(process.config().engines[probe.engine.at()].name),
                       [tell](engine_proxy::ScrapeResult result) {
                         tell(Probed{result.number, fault_of(result.fault), result.status});
                       });
      });
  return {};
}

}  // namespace signalbox::health_monitor
