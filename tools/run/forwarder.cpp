#include "tools/run/forwarder.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "messages/bus/forwarder.hpp"
#include "messages/bus/incarnation.hpp"

namespace signalbox::run {
namespace {

sigset_t ends() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

/// Waits for a signal that means the end.
void wait_for_end(const sigset_t& set) {
  int signal = 0;
  while (::sigwait(&set, &signal) != 0 || signal == SIGHUP) {  // nothing of a forwarder can be reloaded
  }
}

Result<bus::ForwarderProcess> describe(const cli::Fleet& fleet, const config::Bus& bus) {
  const config::Config& config = fleet.config;
  bus::ForwarderProcess process;
  process.forwarder.endpoints = {bus.id, bus.publish, bus.subscribe};
  if (config.security == config::Security::curve) {
    auto keyring = bus::load_keyring(config.keys_dir, bus.id);
    if (!keyring) return tl::unexpected(keyring.error());
    process.forwarder.keyring = std::move(*keyring);
  }
  const auto incarnation = bus::next_incarnation(config.state_dir, bus.id);
  if (!incarnation) return tl::unexpected(incarnation.error());
  process.node.identity = {bus.id, Role::forwarder, {}};
  process.node.incarnation = *incarnation;
  process.node.forwarders = cli::forwarders_of(config);
  process.node.keyring = process.forwarder.keyring;
  process.node.config_fingerprint = config.digest.fingerprint();
  process.beat = config.intervals.beat;
  return process;
}

}  // namespace

Status run_forwarder(const cli::Fleet& fleet, const ProcessName& id) {
  const config::Bus* bus = fleet.config.find_bus(id);
  if (bus == nullptr)
    return fail(ErrorKind::not_found, fmt::format("the fleet has no bus '{}'", id), fleet.file,
                "declare it as [[bus]]");
  const sigset_t set = ends();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // before any thread exists
  auto process = describe(fleet, *bus);
  if (!process) return tl::unexpected(process.error());
  Status done;
  std::jthread runner([&](const std::stop_token& stop) {
    done = bus::run_forwarder(std::move(*process), stop);
    ::kill(::getpid(), SIGTERM);
  });
  wait_for_end(set);
  runner.request_stop();
  runner.join();
  return done;
}

}  // namespace signalbox::run
