// Messages as they arrived, in a file: for `tap --record` and `tap --replay`.
//
// File: "SBXCAP", a version (1 byte), a zero; then records: length of what follows up to the checksum (4 bytes),
// arrival (8 bytes, ns), number of frames (1 byte), each frame as length (4 bytes) and bytes, checksum of all
// that (8 bytes). Numbers are little-endian.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"
#include "messages/bus/node.hpp"

namespace signalbox::bus {

struct CapturedMessage {
  Instant arrived;
  std::vector<std::vector<std::uint8_t>> frames;
  std::vector<FrameView> views() const { return {frames.begin(), frames.end()}; }
};

/// Appends to a new file. Not thread-safe. What it wrote before a crash stays readable.
class CaptureWriter {
 public:
  /// conflict if the file exists.
  static Result<CaptureWriter> create(const std::string& path);
  Status write(Frames frames, Instant arrived);
  Status flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
};

class CaptureReader {
 public:
  static Result<CaptureReader> open(const std::string& path);
  /// The next message; nothing at the end; invalid if the file is damaged or ends within a record.
  Result<std::optional<CapturedMessage>> next();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  std::uint64_t offset_ = 0;
};

}  // namespace signalbox::bus
