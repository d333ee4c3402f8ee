// Takes decisions from the gateway's queue and files them; while the file cannot be written it counts what is lost and
// tries again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster_router/machine/machine.hpp"
#include "actors/cluster_router/records/record_file.hpp"
#include "actors/cluster_router/routing/handover.hpp"

namespace signalbox::cluster_router {

class RecordClerk {
 public:
  using Queue = routing::PlainQueue<routing::FiledRecord>;

  RecordClerk(std::string path, std::uint64_t capacity) : path_(std::move(path)), capacity_(capacity) {}

  /// What the rows of coming records stand for. Any thread.
  void know(const std::shared_ptr<const routing::View>& view);
  /// Files what is in the loops' queues. `to_wall`: what is added to the loops' time for the time since 1970. The answer: whether
  /// decisions are filed, if that has changed. One thread at a time.
  std::optional<DecisionsKept> turn(const std::vector<Queue*>& queues, Duration to_wall, Instant now);

  std::uint64_t filed() const { return filed_.load(std::memory_order_relaxed); }
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  const std::string& path() const { return path_; }

 private:
  Status file();
  Status keep_names();

  std::string path_;
  std::uint64_t capacity_;
  std::optional<RecordFile> file_;
  std::vector<routing::FiledRecord> records_;
  Instant again_ = never_yet;  ///< when a file that failed is opened anew
  std::string problem_;        ///< why nothing is filed, as was told
  std::atomic<std::uint64_t> filed_{0}, lost_{0};

  std::mutex knowing_;
  std::shared_ptr<const routing::View> fresh_;  ///< with names that are not in the file yet
  std::shared_ptr<const routing::View> known_;
};

}  // namespace signalbox::cluster_router
