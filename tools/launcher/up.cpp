#include "tools/launcher/up.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <system_error>

#include "cluster-config/load/load.hpp"
#include "tools/cli/observer.hpp"
#include "tools/cli/state.hpp"
#include "tools/launcher/control.hpp"
#include "tools/launcher/launcher.hpp"
#include "tools/launcher/prepare.hpp"

namespace signalbox::launcher {
namespace {

constexpr Duration answer_time = 5s;

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
  if (*keys) fmt::print("made keys in {}\n", out.fleet.config.keys_dir);
  return out;
}

void print_line(std::string_view line) {
  const auto now = std::chrono::system_clock::now();  // wall time: for people
  fmt::print("{:%H:%M:%S} {}\n", fmt::localtime(std::chrono::system_clock::to_time_t(now)), line);
  std::fflush(stdout);
}

void redraw(const std::string& table) {
  constexpr std::string_view clear_and_home = "\x1b[H\x1b[2J";
  fmt::print("{}{}\nCtrl-C stops the fleet\n", clear_and_home, table);
  std::fflush(stdout);
}

Status run_launcher(Prepared& prepared, bool live, std::function<void()> on_ready) {
  LauncherOptions options{prepared.fleet, cli::own_program(), print_line, {}, std::move(on_ready)};
  if (live) options.show = redraw;
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
    if (!done) print_line(done.error().text());
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
  const auto status = ask(state_dir, "status", answer_time);
  if (status) fmt::print("{}", *status);
  if (ready) return cli::exit_ok;
  fmt::print(stderr,
             "signalbox up: the fleet was not ready after {:.0f} s; it goes on trying. 'signalbox status' "
             "shows what is "
             "missing, {}/logs why, and 'signalbox down' stops it\n",
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
  const Status done = run_launcher(*prepared, ::isatty(STDOUT_FILENO) == 1, [] {});
  if (!done) fmt::print(stderr, "signalbox up: {}\n", done.error().text());
  return done ? cli::exit_ok : cli::exit_of(done.error());
}

}  // namespace signalbox::launcher
