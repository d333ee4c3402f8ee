// Writes a recording: chunk by chunk, so that what was written before a crash stays readable.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/recording/header.hpp"
#include "tools/recording/layout.hpp"

namespace signalbox::recording {

struct WriterStats {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;  ///< of the file
};

/// Not thread-safe. Without close() the file has no index, as after a crash, and is read by its marks.
class Writer {
 public:
  /// Errors: conflict if the file exists, io.
  static Result<Writer> create(const std::string& path, const Header& header);
  /// A message that was accepted; in the order of arrival.
  Status write(Instant arrived, Duration age, std::uint16_t kind, std::string_view topic, View envelope,
               View body);
  /// Writes what waits if it is due; to be called now and then where nothing is written.
  Status tick(Instant now);
  /// Writes what waits and the index.
  Status close();
  const WriterStats& stats() const { return stats_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Status put(View bytes);
  Status put_chunk();

  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  ChunkWriter chunk_;
  std::vector<IndexRow> index_;
  WriterStats stats_;
};

}  // namespace signalbox::recording
