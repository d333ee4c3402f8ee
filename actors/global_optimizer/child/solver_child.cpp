#include "actors/global_optimizer/child/solver_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace signalbox::optimizer {
namespace {

void close_if_open(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

/// The seconds of CPU that a process has used; 0 if unknown.
double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0.0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace

std::string_view to_string(SolverFault fault) {
  switch (fault) {
    case SolverFault::not_started: return "not_started";
    case SolverFault::crashed: return "crashed";
    case SolverFault::timed_out: return "timed_out";
    case SolverFault::bad_reply: return "bad_reply";
    case SolverFault::refused: return "refused";
  }
  return "unknown";
}

std::string_view explain(SolverFault fault) {
  switch (fault) {
    case SolverFault::not_started: return "the solver process could not be started";
    case SolverFault::crashed: return "the solver process ended before it answered";
    case SolverFault::timed_out: return "the solver process did not answer in time and was killed";
    case SolverFault::bad_reply: return "the solver process answered with something that is not a plan";
    case SolverFault::refused: return "the solver process found the problem malformed";
  }
  return "unknown";
}

SolverChild::SolverChild(SolverChildOptions options) : options_(std::move(options)) {}

SolverChild::~SolverChild() { stop(); }

bool SolverChild::start() {
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  if (::pipe2(in, O_CLOEXEC) != 0)
    return failed_start_ = {SolverFault::not_started, std::string("pipe: ") + std::strerror(errno)}, false;
  if (::pipe2(out, O_CLOEXEC) != 0) {
    failed_start_ = {SolverFault::not_started, std::string("pipe: ") + std::strerror(errno)};
    close_if_open(in[0]), close_if_open(in[1]);
    return false;
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  // Threads of ours may block signals or ignore SIGPIPE; the child starts with the defaults.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  ::sigemptyset(&none), ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char* argv[] = {options_.program.data(), nullptr};
  const int error = ::posix_spawn(&pid_, options_.program.c_str(), &actions, &attributes, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  close_if_open(in[0]), close_if_open(out[1]);
  to_child_ = in[1], from_child_ = out[0];
  if (error != 0) {
    pid_ = -1;
    close_if_open(to_child_), close_if_open(from_child_);
    failed_start_ = {SolverFault::not_started, fmt::format("{}: {}", options_.program, std::strerror(error))};
    return false;
  }
  ++starts_;
  ::fcntl(to_child_, F_SETFL, O_NONBLOCK);
  ::fcntl(from_child_, F_SETFL, O_NONBLOCK);
  // posix_spawn knows no limits; the child holds no problem yet, so it is early enough to set them from
  // outside.
  const rlimit memory{options_.memory_bytes, options_.memory_bytes};
  if (limits_memory) ::prlimit(pid_, RLIMIT_AS, &memory, nullptr);
  const rlimit core{0, 0};
  ::prlimit(pid_, RLIMIT_CORE, &core, nullptr);
  return true;
}

void SolverChild::stop() {
  close_if_open(to_child_);
  close_if_open(from_child_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void SolverChild::submit(SolveRequest request, Instant now) {
  if (request_) stop();
  failed_start_.reset();
  request.id = next_id_++;
  const auto body = encode(request);
  const auto prefix = length_prefix(body.size());
  outgoing_.assign(prefix.begin(), prefix.end());
  outgoing_.insert(outgoing_.end(), body.begin(), body.end());
  sent_ = 0;
  incoming_.clear();
  request_ = std::move(request);
  deadline_ = now + options_.deadline;
  if (body.size() > max_message_bytes) {
    failed_start_ = {SolverFault::refused,
                     fmt::format("the problem takes {} bytes, more than {}", body.size(), max_message_bytes)};
    return;
  }
  if (pid_ < 0 && !start()) return;
  rlimit cpu{};
  if (::prlimit(pid_, RLIMIT_CPU, nullptr, &cpu) == 0) {
    cpu.rlim_cur = static_cast<rlim_t>(cpu_seconds(pid_) + options_.cpu_s_per_solve + 1.0);
    ::prlimit(pid_, RLIMIT_CPU, &cpu, nullptr);
  }
}

std::optional<SolverOutcome> SolverChild::poll(Instant now) {
  if (!request_) return std::nullopt;
  if (failed_start_) return fail_solve(failed_start_->fault, failed_start_->text);
  if (!send_some()) return fail_solve(SolverFault::crashed, describe_end());
  if (auto outcome = receive_some()) return outcome;
  if (now >= deadline_)
    return fail_solve(SolverFault::timed_out,
                      fmt::format("no answer within {:.3f} s", to_seconds(options_.deadline)));
  return std::nullopt;
}

bool SolverChild::send_some() {
  // SIGPIPE must not end the optimizer when the child is gone: it is blocked for the write, and taken back if
  // the write raised it.
  sigset_t pipe_signal, before;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  bool alive = true;
  while (sent_ < outgoing_.size()) {
    const ssize_t n = ::write(to_child_, outgoing_.data() + sent_, outgoing_.size() - sent_);
    if (n >= 0) {
      sent_ += static_cast<std::size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) {
      const timespec at_once{};
      ::sigtimedwait(&pipe_signal, nullptr, &at_once);
    }
    alive = errno == EAGAIN || errno == EWOULDBLOCK;
    break;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return alive;
}

std::optional<SolverOutcome> SolverChild::receive_some() {
  std::uint8_t chunk[65536];
  for (;;) {
    const ssize_t n = ::read(from_child_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (n <= 0) return fail_solve(SolverFault::crashed, describe_end());
    incoming_.insert(incoming_.end(), chunk, chunk + n);
    if (incoming_.size() < 4) continue;
    const std::uint32_t length = read_length(std::span<const std::uint8_t, 4>(incoming_.data(), 4));
    if (length > max_message_bytes)
      return fail_solve(SolverFault::bad_reply, fmt::format("a reply of {} bytes", length));
    if (incoming_.size() < 4u + length) continue;
    if (incoming_.size() > 4u + length) return fail_solve(SolverFault::bad_reply, "bytes follow the reply");
    auto reply = decode_reply(std::span(incoming_).subspan(4), request_->problem);
    if (!reply) return fail_solve(SolverFault::bad_reply, reply.error().text());
    if (!reply->plan) return fail_solve(SolverFault::refused, reply->plan.error().text());
    if (reply->id != request_->id)
      return fail_solve(SolverFault::bad_reply, "the reply is to another request");
    request_.reset();
    incoming_.clear();
    return SolverOutcome(std::move(*reply->plan));
  }
}

SolverOutcome SolverChild::fail_solve(SolverFault fault, std::string text) {
  request_.reset();
  incoming_.clear();
  stop();
  return tl::unexpected(SolverFailure{fault, std::move(text)});
}

std::string SolverChild::describe_end() {
  int status = 0;
  for (int i = 0; i < 2 && pid_ > 0; ++i) {
    const pid_t ended = ::waitpid(pid_, &status, i == 0 ? WNOHANG : 0);
    if (ended == pid_) {
      pid_ = -1;
      if (WIFSIGNALED(status))
        return fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
      return fmt::format("exited with code {}", WEXITSTATUS(status));
    }
    // Its pipe is closed but it still runs: it is ending, or it misbehaves and is made to.
    if (ended == 0) ::kill(pid_, SIGKILL);
  }
  return "its pipe broke";
}

std::optional<Instant> SolverChild::deadline() const {
  return request_ ? std::optional(deadline_) : std::nullopt;
}

SolverChild::Descriptors SolverChild::descriptors() const {
  if (!request_ || pid_ < 0) return {};
  return {from_child_, sent_ < outgoing_.size() ? to_child_ : -1};
}

void SolverChild::wait(Duration longest) const {
  const Descriptors fds = descriptors();
  pollfd polled[2] = {{fds.read, POLLIN, 0}, {fds.write, POLLOUT, 0}};
  if (failed_start_) return;
  const auto nanoseconds = std::max<Duration::rep>(0, longest.count());
  const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000),
                         static_cast<long>(nanoseconds % 1'000'000'000)};
  ::ppoll(polled, 2, &timeout, nullptr);
}

}  // namespace signalbox::optimizer
