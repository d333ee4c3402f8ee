#include "actors/roles/forwarder.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <stop_token>
#include <thread>

#include "actors/kit/state_dir.hpp"
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
  bus::ForwarderProcess out;
  out.forwarder.endpoints = {row->id, row->publish, row->subscribe};
  if (config.security == config::Security::curve) {
    auto keys = bus::load_keyring(config.keys_dir, id);
    if (!keys) return tl::unexpected(keys.error());
    out.forwarder.keyring = out.node.keyring = *std::move(keys);
  }
  out.node.identity = {id, Role::forwarder, {}};
  out.node.incarnation = *incarnation;
  for (const auto& other : config.buses)
    out.node.forwarders.push_back({other.id, other.publish, other.subscribe});
  out.node.config_fingerprint = config.digest.fingerprint();
  out.beat = config.intervals.beat;
  return out;
}

}  // namespace

int run_forwarder(const config::Config& config, const ProcessName& id, const RunOptions&) {
  auto process = prepare(config, id);
  if (!process) {
    fmt::print(stderr, "signalbox run forwarder: {}\n", process.error().text());
    return process.error().kind == ErrorKind::not_found ? 2 : 1;
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  Status served;
  std::jthread loop([&](std::stop_token stop) {
    served = bus::run_forwarder(*std::move(process), std::move(stop));
    ::kill(::getpid(), SIGTERM);
  });
  int got = SIGHUP;
  while (got == SIGHUP) sigwait(&signals, &got);
  loop.request_stop();
  loop.join();
  if (served) return 0;
  fmt::print(stderr, "signalbox run forwarder: {}\n", served.error().text());
  return 1;
}

}  // namespace signalbox::actors
