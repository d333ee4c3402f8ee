#include "actors/kit/state_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "messages/base/digest.hpp"

namespace signalbox::kit {

namespace {

tl::unexpected<Error> io_error(std::string_view what, const std::string& path) {
  return fail(ErrorKind::io, fmt::format("{}: {}", what, std::strerror(errno)), path,
              "check the state folder's disk and rights");
}

/// Closes on every path.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot write", path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0 ? Status{} : Status(io_error("cannot sync", path));
}

std::string header(std::string_view bytes) { return fmt::format("signalbox 1 {}\n", digest_of(bytes).hex()); }

}  // namespace

Result<StateDir> StateDir::open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(ErrorKind::io, error.message(), path, "the state folder must be writable");
  ::chmod(path.c_str(), 0700);
  return StateDir(path);
}

Status StateDir::write(const Persist& what) const {
  const std::string path = path_ + "/" + what.name, beside = path + ".new";
  {
    const Descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    if (file.fd < 0) return io_error("cannot open", beside);
    if (auto written = write_all(file.fd, header(what.bytes) + what.bytes, beside); !written) return written;
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) return io_error("cannot rename", beside);
  const Descriptor folder{::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.fd < 0 || ::fsync(folder.fd) != 0) return io_error("cannot sync", path_);
  return {};
}

std::string StateDir::read(std::string_view name) const {
  std::stringstream text;
  text << std::ifstream(path_ + "/" + std::string(name)).rdbuf();
  std::string bytes = text.str();
  const auto line = bytes.find('\n');
  if (line == std::string::npos) return {};
  const std::string head = bytes.substr(0, line + 1);
  bytes.erase(0, line + 1);
  return head == header(bytes) ? bytes : std::string();
}

}  // namespace signalbox::kit
