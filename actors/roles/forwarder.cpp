#include "actors/roles/forwarder.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "actors/kit/state_dir.hpp"
#include "actors/kit/watchdog.hpp"
#include "actors/operator/metrics.hpp"
#include "actors/operator/server.hpp"
#include "messages/bus/forwarder.hpp"
#include "messages/bus/incarnation.hpp"

namespace signalbox::actors {

namespace {

Result<bus::ForwarderProcess> prepare(const config::Config& config, const ProcessName& id) {
  const config::Bus* row = config.find_bus(id);
  if (!row)
    return fail(ErrorKind::not_found, fmt::format("no bus '{}'", id), config.file,
                "add a [[bus]] with this id");
  const auto state = kit::StateDir::open(config.state_dir + "/processes/" + id.str());
  if (!state) return tl::unexpected(state.error());
  const auto incarnation = bus::next_incarnation(state->path(), id);
  if (!incarnation) return tl::unexpected(incarnation.error());
  if (!incarnation->kept)
    std::fputs(
        fmt::format("signalbox run forwarder: {}; it starts all the same\n", incarnation->kept.error().text())
            .c_str(),
        stderr);
  bus::ForwarderProcess out;
  out.forwarder.endpoints = {row->id, row->publish, row->subscribe};
  if (config.security == config::Security::curve) {
    auto keys = bus::load_keyring(config.keys_dir, id);
    if (!keys) return tl::unexpected(keys.error());
    out.forwarder.keyring = out.node.keyring = *std::move(keys);
  }
  out.node.identity = {id, Role::forwarder, {}};
  out.node.incarnation = incarnation->incarnation;
  for (const auto& other : config.buses)
    out.node.forwarders.push_back({other.id, other.publish, other.subscribe});
  out.node.config_fingerprint = config.digest.fingerprint();
  out.beat = config.intervals.beat;
  out.operator_endpoint = row->operator_listen;
  return out;
}

/// What the forwarder last said of itself, for the operators' port.
class LastBeat {
 public:
  void set(const schema::Beat& beat, const bus::ForwarderStats& stats) {
    const std::lock_guard lock(mutex_);
    beat_ = beat;
    stats_ = stats;
  }
  operators::Subject subject() const {
    return {[this] {
              const std::lock_guard lock(mutex_);
              kit::Standing out;
              out.ready = beat_.ready, out.state = beat_.state;
              return out;
            },
            [this] {
              const std::lock_guard lock(mutex_);
              return operators::metrics_of(beat_, stats_);
            },
            {}};
  }

 private:
  mutable std::mutex mutex_;
  schema::Beat beat_;
  bus::ForwarderStats stats_;
};

int complain(const Error& error) {
  std::fputs(fmt::format("signalbox run forwarder: {}\n", error.text()).c_str(), stderr);
  return error.kind == ErrorKind::not_found ? 2 : 1;
}

}  // namespace

int run_forwarder(const config::Config& config, const ProcessName& id, const RunOptions&) {
  auto process = prepare(config, id);
  if (!process) return complain(process.error());
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  LastBeat last;
  const kit::Watchdog watchdog = kit::Watchdog::from_environment();
  process->on_beat = [&last, &watchdog](const schema::Beat& beat, const bus::ForwarderStats& stats) {
    last.set(beat, stats);
    watchdog.turned(beat.loop_lag);
  };
  std::unique_ptr<operators::Server> operator_port;
  if (const std::string& listen = config.find_bus(id)->operator_listen; !listen.empty()) {
    auto listening = operators::Server::start(listen, last.subject());
    if (!listening) return complain(listening.error());
    operator_port = *std::move(listening);
  }
  Status served;
  std::jthread loop([&](std::stop_token stop) {
    served = bus::run_forwarder(*std::move(process), std::move(stop));
    ::kill(::getpid(), SIGTERM);
  });
  watchdog.started();
  int got = SIGHUP;
  while (got == SIGHUP) sigwait(&signals, &got);
  watchdog.stopping();
  loop.request_stop();
  loop.join();
  return served ? 0 : complain(served.error());
}

}  // namespace signalbox::actors
