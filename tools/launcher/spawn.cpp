#include "tools/launcher/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace signalbox::launcher {
namespace {

constexpr int exec_failed = 127;

/// Between fork and exec: only what is safe after fork in a process with threads.
[[noreturn]] void become(const char* program, char* const* arguments, int log, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);
  if (::getppid() != parent) ::_exit(exec_failed);  // it died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv(program, arguments);
  constexpr char text[] = "cannot be executed\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(exec_failed);
}

}  // namespace

Result<pid_t> spawn(const std::string& program, const std::vector<std::string>& arguments,
                    const std::string& log_path) {
  int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  // A disk without room for a log is no reason not to run.
  if (log < 0 && errno == ENOSPC) log = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (log < 0) return fail(ErrorKind::io, std::generic_category().message(errno), log_path);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(program.c_str(), argv.data(), log, parent);
  const int error = errno;
  ::close(log);
  if (pid < 0) return fail(ErrorKind::io, std::generic_category().message(error), program);
  ::setpgid(pid, pid);
  return pid;
}

void signal_group(pid_t leader, int signal) {
  if (leader > 1) ::kill(-leader, signal);
}

std::string last_words(const std::string& log_path, std::uintmax_t from) {
  constexpr std::uintmax_t tail = 4096;
  constexpr std::size_t longest = 200;
  std::ifstream log(log_path, std::ios::binary);
  log.seekg(0, std::ios::end);
  const auto end = static_cast<std::uintmax_t>(std::max<std::streamoff>(log.tellg(), 0));
  if (!log || end <= from) return {};
  log.seekg(static_cast<std::streamoff>(std::max(from, end - std::min(end, tail))));
  std::string last;
  for (std::string line; std::getline(log, line);)
    if (!line.empty()) last = std::move(line);
  return last.substr(0, longest);
}

std::string describe_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("killed by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

}  // namespace signalbox::launcher
