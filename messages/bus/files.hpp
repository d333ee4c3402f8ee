// Small files that must not be lost, half-written or read by others.
#pragma once

#include <string>
#include <string_view>

#include "messages/base/result.hpp"

namespace signalbox::bus {

/// Creates the folder with mode 0700 if it is missing (its parent must exist).
Status make_private_folder(const std::string& dir);
/// denied if others may enter or write the folder.
Status check_private_folder(const std::string& dir);

/// Writes a file with mode 0600 by way of a temporary one: after a crash there is the old content or the new.
Status write_durably(const std::string& path, std::string_view content);
/// not_found if there is none.
Result<std::string> read_whole(const std::string& path);
/// As read_whole; denied if others may read it.
Result<std::string> read_secret(const std::string& path);

/// "path: what: the system's reason".
tl::unexpected<Error> fail_errno(std::string_view what, const std::string& path);

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace signalbox::bus
