#include "tools/launcher/up.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cluster-config/load/load.hpp"
#include "tools/cli/observer.hpp"
#include "tools/cli/state.hpp"
#include "tools/launcher/control.hpp"
#include "tools/launcher/launcher.hpp"
#include "tools/launcher/prepare.hpp"
#include "tools/launcher/screen.hpp"

namespace signalbox::launcher {
namespace {

struct Prepared {
  PortBlock ports;
  cli::Fleet fleet;
};

/// The policy too, alone and against the configuration: a fleet that would not get a plan is not started.
Status check_policy(const cli::Fleet& fleet) {
  const auto loaded = config::load(fleet.file, fleet.overrides);
  if (loaded) return {};
  std::string report = loaded.error().report;
  while (report.ends_with('\n')) report.pop_back();
  return invalid("the configuration or its policy is wrong\n" + report);
}

/// Everything that can be refused before a process is started.
Result<Prepared> prepare(const UpOptions& options) {
  Prepared out;
  cli::FleetOptions given = options.fleet;
  if (options.free_ports) {
    auto ports = take_any_ports();
    if (!ports) return tl::unexpected(ports.error());
    out.ports = std::move(*ports);
    given.port_base = out.ports.base;
  }
  auto fleet = cli::open_fleet(given);
  if (!fleet) return tl::unexpected(fleet.error());
  out.fleet = std::move(*fleet);
  if (const Status good = check_policy(out.fleet); !good) return tl::unexpected(good.error());
  if (const Status taken = take_state_folder(out.fleet); !taken) return tl::unexpected(taken.error());
  if (!options.free_ports) {
    auto ports = take_ports(out.fleet.config.port_base);
    if (!ports) return tl::unexpected(ports.error());
    out.ports = std::move(*ports);
  }
  const auto keys = make_missing_keys(out.fleet);
  if (!keys) return tl::unexpected(keys.error());
  if (*keys)
    fmt::print("made keys in {}\n", out.fleet.config.keys_dir);
  else if (const Status usable = check_keys(out.fleet); !usable)
    return tl::unexpected(usable.error());
  return out;
}

Status run_launcher(Prepared& prepared, bool foreground, std::function<void()> on_ready) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader of our output that leaves does not take the fleet with it
  LauncherOptions options{prepared.fleet, cli::own_program(), print_event, {}, false, std::move(on_ready)};
  Screen screen;
  options.on_terminal = foreground && (::isatty(STDIN_FILENO) == 1 || ::isatty(STDOUT_FILENO) == 1);
  if (foreground && ::isatty(STDOUT_FILENO) == 1) {
    options.note = [&screen](std::string_view line) { screen.note(line); };
    options.show = [&screen](const std::vector<fleet_view::Table>& tables) { screen.draw(tables); };
  }
  return Launcher(std::move(options)).run();
}

/// In the child of a detached start: a session of its own, output into the log.
void leave_terminal(const std::string& state_dir) {
  ::setsid();
  const net::Fd nothing(::open("/dev/null", O_RDONLY));
  const net::Fd log(::open((state_dir + "/logs/launcher.log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
}

/// Waits for the launcher's word. True: ready; false: it ended; nothing: neither within `longest`.
std::optional<bool> wait_for_word(int pipe, Duration longest) {
  const Instant end = cli::monotonic_now() + longest;
  for (;;) {
    pollfd wait{pipe, POLLIN, 0};
    const Duration left = end - cli::monotonic_now();
    if (left <= Duration::zero()) return {};
    const int got = ::poll(&wait, 1, static_cast<int>(left / 1ms) + 1);
    if (got < 0 && errno != EINTR) return false;
    char word = 0;
    if (got > 0) return ::read(pipe, &word, 1) == 1;
  }
}

cli::Exit detach(Prepared& prepared, Duration longest) {
  int ends[2];
  std::fflush(stdout);
  if (::pipe2(ends, O_CLOEXEC) != 0) return cli::exit_failed;
  net::Fd hear(ends[0]), say(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return cli::exit_failed;
  if (pid == 0) {
    hear.reset();
    leave_terminal(prepared.fleet.config.state_dir);
    const Status done = run_launcher(prepared, false, [&say] {
      [[maybe_unused]] const auto told = ::write(say.get(), "r", 1);
      say.reset();
    });
    if (!done) print_event(done.error().text());
    ::_exit(done ? cli::exit_ok : cli::exit_failed);
  }
  say.reset();
  prepared.ports.guard.reset();
  const std::string& state_dir = prepared.fleet.config.state_dir;
  const auto ready = wait_for_word(hear.get(), longest);
  if (ready == false) {
    fmt::print(stderr, "signalbox up: the launcher ended; {}/logs/launcher.log says why\n", state_dir);
    return cli::exit_failed;
  }
  const auto status = ask(state_dir, "status");
  if (status) fmt::print("{}", *status);
  if (ready) return cli::exit_ok;
  fmt::print(
      stderr,
      "signalbox up: the fleet was not ready after {:.0f} s; it goes on trying. 'signalbox status' shows "
      "what is missing, {}/logs why, and 'signalbox down' stops it\n",
      to_seconds(longest), state_dir);
  return cli::exit_failed;
}

}  // namespace

cli::Exit up(UpOptions options) {
  auto prepared = prepare(options);
  if (!prepared) {
    fmt::print(stderr, "signalbox up: {}\n", prepared.error().text());
    return cli::exit_of(prepared.error());
  }
  if (options.detach) return detach(*prepared, from_seconds(options.wait_s));
  const Status done = run_launcher(*prepared, true, [] {});
  if (!done) fmt::print(stderr, "signalbox up: {}\n", done.error().text());
  return done ? cli::exit_ok : cli::exit_of(done.error());
}

}  // namespace signalbox::launcher
