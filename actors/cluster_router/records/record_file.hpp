// The ring file of a router's decisions: the latest million of them (router.decisions), 128 bytes each, also after the router
// has been restarted or killed.
//
//   0          head, twice: capacity, how many were ever written, checksum     the valid one with the higher number counts
//   4 KiB      16 places for names: what the rows of policy and fleet table stood for, by fingerprint
//   4.004 MiB  records; the nth is at n modulo capacity
//
// It is written by pwrite from the thread that takes the gateway's batches, never by the event loop and not through a mapping: a
// full or failing disk is then an error value and not a SIGBUS, pages of the file are the system's cache and not this
// process's memory, and one call writes all that was decided in 50 ms. The file is sparse: it takes the room that was
// used. Nothing is synced: what a process wrote survives its death, what a machine's crash tears is told by its checksum.
//
// The head says first how far will be written, then the records follow: a crash between the two leaves older records
// where newer ones should be, and those are still what they say. A router and its successor may both write, during a
// handover: each takes the file's lock for the few microseconds of a write.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "actors/cluster_router/routing/filed_record.hpp"
#include "messages/base/result.hpp"

namespace signalbox::cluster_router {

class RecordFile {
 public:
  static constexpr std::string_view name = "decisions.ring";
  static constexpr std::size_t most_names_bytes = 256 * 1024 - 16;

  RecordFile(RecordFile&&) noexcept;
  RecordFile& operator=(RecordFile&&) noexcept;
  ~RecordFile();

  /// Opens or makes it. A file of another capacity or format is set aside as PATH.before. Errors: io.
  static Result<RecordFile> open(const std::string& path, std::uint64_t capacity);

  /// Appends, oldest first; seals the records. After an error some of them may be there.
  Status append(std::span<routing::FiledRecord> records);
  /// Keeps these names, unless it has them.
  Status keep_names(std::uint32_t fingerprint, std::string_view text);

  struct Found {
    routing::FiledRecord record;
    std::optional<routing::FiledNames> names;  ///< nothing: they are no longer known
  };
  /// The latest record of that decision; nothing if it is not there, or torn. Reads the file from its newest record back, without
  /// any lock. Errors: io; invalid for a file that is no ring of decisions.
  static Result<std::optional<Found>> find(const std::string& path, const routing::DecisionId& id);

 private:
  RecordFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Status write(std::uint64_t offset, const void* bytes, std::size_t size) const;
  Status begin(std::uint64_t capacity);

  int fd_ = -1;
  std::string path_;
  std::uint64_t capacity_ = 0;
  std::set<std::uint32_t> names_;  ///< that are in the file
};

}  // namespace signalbox::cluster_router
