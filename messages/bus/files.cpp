#include "messages/bus/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace signalbox::bus {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

tl::unexpected<Error> fail_errno(std::string_view what, const std::string& path) {
  const int code = errno;
  return fail(code == ENOENT ? ErrorKind::not_found : ErrorKind::io,
              fmt::format("{}: {}", what, std::strerror(code)), path);
}

Status make_private_folder(const std::string& dir) {
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno("cannot be created", dir);
  return {};
}

Status check_private_folder(const std::string& dir) {
  struct stat info {};
  if (::stat(dir.c_str(), &info) != 0) return fail_errno("cannot be read", dir);
  if (info.st_uid != ::geteuid() || (info.st_mode & 0077) != 0)
    return fail(ErrorKind::denied, "others may enter this folder", dir, "chmod 700 it, as its owner");
  return {};
}

namespace {

Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("cannot be written", path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string dir = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return fail_errno("cannot be made durable", dir);
  return {};
}

}  // namespace

Status write_durably(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  {
    const Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd.valid()) return fail_errno("cannot be created", temporary);
    Status status = write_all(fd.get(), content, temporary);
    if (status && ::fsync(fd.get()) != 0) status = fail_errno("cannot be made durable", temporary);
    if (!status) {
      ::unlink(temporary.c_str());
      return status;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail_errno("cannot be replaced", path);
  return sync_folder_of(path);
}

namespace {

Result<std::string> read_from(const Descriptor& fd, const std::string& path) {
  std::string out;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("cannot be read", path);
    if (got == 0) return out;
    out.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::string> read_whole(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot be opened", path);
  return read_from(fd, path);
}

Result<std::string> read_secret(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot be opened", path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("cannot be read", path);
  if ((info.st_mode & 0077) != 0)
    return fail(ErrorKind::denied, "others may read this secret", path, "chmod 600 it, then rotate the keys");
  return read_from(fd, path);
}

}  // namespace signalbox::bus
