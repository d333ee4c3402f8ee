#include "tools/cli/state.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string_view>

#include "tools/cli/fleet.hpp"

namespace signalbox::cli {
namespace {

std::string path_of(const std::string& state_dir) { return state_dir + "/launcher.tsv"; }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class T>
bool read_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

/// A path may hold what separates lines and cells.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size())
      out += text[++i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    else
      out += text[i];
  }
  return out;
}

bool read_line(std::string_view line, LauncherState& state) {
  const auto cells = split(line, '\t');
  if (cells[0] == "launcher" && cells.size() == 3)
    return read_number(cells[1], state.launcher.pid) && read_number(cells[2], state.launcher.started);
  if (cells[0] == "port_base" && cells.size() == 2) return read_number(cells[1], state.port_base);
  if (cells[0] == "fleet" && cells.size() == 2) {
    state.fleet = cells[1];
    return true;
  }
  if (cells[0] == "config" && cells.size() == 2) {
    state.config = unescaped(cells[1]);
    return true;
  }
  if (cells[0] == "process" && cells.size() == 4) {
    auto& entry = state.processes.emplace_back();
    entry.name = cells[1];
    return read_number(cells[2], entry.process.pid) && read_number(cells[3], entry.process.started);
  }
  return false;
}

}  // namespace

std::optional<ProcessRef> process_now(pid_t pid) {
  if (pid <= 0) return {};
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return {};
  // "pid (name) state ppid ..."; the name may hold anything, so count from the last parenthesis.
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text->size()) return {};
  const auto cells = split(std::string_view(*text).substr(name_end + 2), ' ');
  ProcessRef process{pid, 0};
  constexpr std::size_t state_cell = 0, started_cell = 19;
  if (cells.size() <= started_cell || cells[state_cell] == "Z" || cells[state_cell] == "X") return {};
  if (!read_number(cells[started_cell], process.started)) return {};
  return process;
}

bool is_running(const ProcessRef& process) {
  const auto now = process_now(process.pid);
  return now && now->started == process.started;
}

bool wait_until_gone(const ProcessRef& process, Duration longest) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  bool gone = !is_running(process);
  if (!gone && fd >= 0) {
    pollfd wait{fd, POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(longest / 1ms));
    gone = !is_running(process);
  }
  if (fd >= 0) ::close(fd);
  return gone;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

Result<LauncherState> read_state(const std::string& state_dir) {
  const std::string path = path_of(state_dir);
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  LauncherState state;
  for (const std::string_view line : split(*text, '\n'))
    if (!line.empty() && !read_line(line, state))
      return invalid(fmt::format("cannot make sense of '{}'", line), path,
                     "delete it when no fleet runs there");
  return state;
}

Status write_state(const std::string& state_dir, const LauncherState& state) {
  std::string text =
      fmt::format("fleet\t{}\nlauncher\t{}\t{}\nport_base\t{}\nconfig\t{}\n", state.fleet, state.launcher.pid,
                  state.launcher.started, state.port_base, escaped(state.config));
  for (const auto& entry : state.processes)
    text += fmt::format("process\t{}\t{}\t{}\n", entry.name, entry.process.pid, entry.process.started);
  return write_file(path_of(state_dir), text);
}

void remove_state(const std::string& state_dir) {
  std::error_code ignored;
  std::filesystem::remove(path_of(state_dir), ignored);
}

}  // namespace signalbox::cli
