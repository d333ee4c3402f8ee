// Where each session was served last: one loop's way into what the loops share, by the rows of its own fleet table.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/cluster_router/routing/shared_state.hpp"
#include "messages/base/ids.hpp"

namespace signalbox::routing {

class Sessions {
 public:
  explicit Sessions(SharedState& shared) : shared_(shared) {}

  EngineIndex find(std::uint64_t session_hash) const {
    const std::uint32_t number = shared_.home_of(session_hash);
    return number < rows_.size() ? rows_[number] : EngineIndex{};
  }
  void set(std::uint64_t session_hash, EngineIndex engine) {
    if (session_hash != 0) shared_.set_home(session_hash, numbers_[engine.at()]);
  }
  /// The engines' numbers, by row of a new table.
  void follow(std::vector<std::uint32_t> numbers) {
    numbers_ = std::move(numbers);
    rows_.clear();
    for (std::size_t row = 0; row < numbers_.size(); ++row) {
      if (numbers_[row] == SharedState::none) continue;
      if (numbers_[row] >= rows_.size()) rows_.resize(numbers_[row] + 1);
      rows_[numbers_[row]] = EngineIndex(row);
    }
  }

 private:
  SharedState& shared_;
  std::vector<std::uint32_t> numbers_;  ///< by row
  std::vector<EngineIndex> rows_;       ///< by number
};

}  // namespace signalbox::routing
