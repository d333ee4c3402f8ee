#include "actors/cluster_router/record_clerk.hpp"

#include <utility>

namespace signalbox::cluster_router {

namespace {
constexpr Duration try_again = 5s;
}

void RecordClerk::know(const std::shared_ptr<const routing::View>& view) {
  const std::lock_guard lock(knowing_);
  if (known_ && known_->policy == view->policy && known_->table == view->table) return;
  fresh_ = known_ = view;
}

std::optional<DecisionsKept> RecordClerk::turn(const std::vector<Queue*>& queues, Duration to_wall,
                                               Instant now) {
  records_.clear();
  for (Queue* queue : queues) queue->take(records_);
  for (auto& record : records_) record.arrived_us += to_wall / 1us;
  if (!file_ && now < again_) {
    lost_.fetch_add(records_.size(), std::memory_order_relaxed);
    return std::nullopt;
  }
  const Status done = file();
  (done ? filed_ : lost_).fetch_add(records_.size(), std::memory_order_relaxed);
  if (!done) file_.reset(), again_ = now + try_again;
  const std::string text = done ? std::string() : done.error().text();
  if (std::exchange(problem_, text) == text) return std::nullopt;
  return DecisionsKept{text.empty(), text};
}

Status RecordClerk::file() {
  if (!file_) {
    auto opened = RecordFile::open(path_, capacity_);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    file_.emplace(*std::move(opened));
    const std::lock_guard lock(knowing_);
    fresh_ = known_;
  }
  if (const Status named = keep_names(); !named) return named;
  return file_->append(records_);
}

Status RecordClerk::keep_names() {
  std::shared_ptr<const routing::View> view;
  {
    const std::lock_guard lock(knowing_);
    view = std::exchange(fresh_, nullptr);
  }
  if (!view) return {};
  return file_->keep_names(
      routing::fingerprint_of(*view->policy, *view->table),
      routing::names_text(view->cluster, *view->policy, *view->table, RecordFile::most_names_bytes));
}

}  // namespace signalbox::cluster_router
