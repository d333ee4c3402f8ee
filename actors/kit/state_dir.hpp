// A process's own folder for what must outlive it.
#pragma once

#include <string>
#include <string_view>

#include "actors/kit/shape/machine.hpp"
#include "messages/base/result.hpp"

namespace signalbox::kit {

class StateDir {
 public:
  /// Makes the folder (0700) if it is not there.
  static Result<StateDir> open(const std::string& path);

  /// Writes beside, syncs, renames, syncs the folder: after a crash there is the old content or the new one. io with the
  /// path and the system's words.
  Status write(const Persist& what) const;
  /// What was written under this name; empty if nothing was or if its checksum does not hold.
  std::string read(std::string_view name) const;
  const std::string& path() const { return path_; }

 private:
  explicit StateDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace signalbox::kit
