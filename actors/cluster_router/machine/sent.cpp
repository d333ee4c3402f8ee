#include "actors/cluster_router/machine/sent.hpp"

namespace signalbox::cluster_router {

void SentBook::add_own(const std::vector<schema::SentRow>& rows, const Digest& table,
                       std::uint32_t block_bytes) {
  if (rows.empty()) return;
  if (table != own_table_) own_.clear();
  own_table_ = table;
  block_bytes_ = block_bytes;
  own_.insert(own_.end(), rows.begin(), rows.end());
  if (own_.size() > most_rows) own_.erase(own_.begin(), own_.end() - static_cast<std::ptrdiff_t>(most_rows));
}

std::optional<schema::SentPrefixes> SentBook::take_own(const ClusterName& cluster) {
  if (own_.empty()) return std::nullopt;
  return schema::SentPrefixes{cluster, own_table_, static_cast<double>(block_bytes_),
                              std::exchange(own_, {})};
}

void SentBook::hear(const schema::SentPrefixes& message, const Digest& table, Instant now) {
  const bool other_blocks = block_bytes_ != 0 && message.block_bytes != static_cast<double>(block_bytes_);
  if (message.table != table || other_blocks || message.rows.empty()) return;
  keep(UINT32_MAX, message.rows, now);
}

void SentBook::tell_loops(std::uint32_t from, const std::vector<schema::SentRow>& rows, const Digest& of,
                          const Digest& table, Instant now) {
  if (of == table) keep(from, rows, now);
}

void SentBook::keep(std::uint32_t loop, std::vector<schema::SentRow> rows, Instant now) {
  auto batch = std::make_shared<routing::SentBatch>();
  batch->number = ++number_;
  batch->loop = loop;
  batch->rows = std::move(rows);
  others_.push_back(std::move(batch));
  heard_.push_back(now);
}

void SentBook::forget_old(Instant now) {
  while (!heard_.empty() && now - heard_.front() > kept) heard_.pop_front(), others_.pop_front();
}

}  // namespace signalbox::cluster_router
