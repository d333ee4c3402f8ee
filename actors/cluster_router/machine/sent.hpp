// Shared cache knowledge: what this router sent, to be told to the others, and what the others sent, for the loops.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "actors/cluster_router/routing/view.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::cluster_router {

class SentBook {
 public:
  static constexpr std::size_t most_rows = 100'000;  ///< of one message; older ones are forgotten first
  static constexpr Duration kept = 5s;               ///< loops take a view many times a second

  /// From this router's own loops.
  void add_own(const std::vector<schema::SentRow>& rows, const Digest& table, std::uint32_t block_bytes);
  /// The rows since the last take, or nothing.
  std::optional<schema::SentPrefixes> take_own(const ClusterName& cluster);

  /// From another router. Ignored when it indexes another table or counts blocks of another size.
  void hear(const schema::SentPrefixes& message, const Digest& table, Instant now);
  /// From one of several own loops, for the others.
  void tell_loops(std::uint32_t from, const std::vector<schema::SentRow>& rows, const Digest& of,
                  const Digest& table, Instant now);
  void forget_old(Instant now);
  const std::deque<std::shared_ptr<const routing::SentBatch>>& others() const { return others_; }

 private:
  void keep(std::uint32_t loop, std::vector<schema::SentRow> rows, Instant now);

  std::vector<schema::SentRow> own_;
  Digest own_table_;
  std::uint32_t block_bytes_ = 0;
  std::deque<std::shared_ptr<const routing::SentBatch>> others_;
  std::deque<Instant> heard_;  ///< beside others_
  std::uint64_t number_ = 0;
};

}  // namespace signalbox::cluster_router
