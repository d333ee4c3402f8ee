#include "actors/cluster_router/routing/hot_prefixes.hpp"

#include <algorithm>

namespace signalbox::routing {

void HotPrefixes::saw(ClassIndex request_class, std::span<const std::uint64_t> blocks) {
  if (blocks_.bytes() == 0) {  // at first, and after a clear(): nothing is allocated later
    known_.reserve(most_blocks);
    touched_.reserve(most_blocks);
    blocks_.reserve(most_blocks);
  }
  if (recent_.size() <= request_class.at()) recent_.resize(request_class.at() + 1);
  const double hot = std::max(least_requests, hot_share * ++recent_[request_class.at()]);
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block* block = blocks_.find(blocks[i]);
    if (block == nullptr) {
      if (known_.size() >= most_blocks) break;
      block = &blocks_.get(blocks[i]);
      *block = {0, static_cast<std::uint32_t>(i + 1), 0, request_class};
      known_.push_back(blocks[i]);
    }
    ++block->recent;
    if (static_cast<double>(block->recent) < hot) break;
    longest = blocks[i];
  }
  if (longest == 0) return;
  Block* block = blocks_.find(longest);
  if (block->depth >= least_depth && block->requests++ == 0) touched_.push_back(longest);
}

std::vector<schema::HotGroupRow> HotPrefixes::drain(double block_tokens, Instant now) {
  std::vector<schema::HotGroupRow> out;
  for (const std::uint64_t key : touched_) {
    Block* block = blocks_.find(key);
    out.push_back({block->request_class, key, block->depth * block_tokens, block->requests});
    block->requests = 0;
  }
  touched_.clear();
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.requests != b.requests ? a.requests > b.requests : a.group < b.group;
  });
  if (out.size() > most_groups) out.resize(most_groups);
  forget(now);
  return out;
}

void HotPrefixes::forget(Instant now) {
  if (halved_at_ == never_yet) halved_at_ = now;
  if (now - halved_at_ < half_life) return;
  halved_at_ = now;
  for (double& recent : recent_) recent /= 2;
  std::erase_if(known_, [this](std::uint64_t key) {
    Block* block = blocks_.find(key);
    block->recent /= 2;
    if (block->recent >= 1) return false;
    blocks_.erase(key);
    return true;
  });
}

void HotPrefixes::clear() {
  blocks_.clear();
  known_.clear();
  touched_.clear();
  recent_.clear();
}

}  // namespace signalbox::routing
