// Which decisions a loop hands out while somebody listens: as many a second as the router may publish, and no more, so
// that listening costs a bounded part of its time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "messages/base/time.hpp"
#include "messages/schema/inputs.hpp"

namespace signalbox::routing {

/// So many a second, and up to a second's worth at once.
class PublishRate {
 public:
  explicit PublishRate(double per_s) : per_s_(per_s), left_(per_s) {}
  bool take(double cost, Instant now) {
    if (last_ != never_yet) left_ = std::min(per_s_, left_ + per_s_ * to_seconds(now - last_));
    last_ = now;
    if (left_ < cost) return false;
    left_ -= cost;
    return true;
  }

 private:
  double per_s_;
  double left_;
  Instant last_ = never_yet;
};

/// What waits for the next batch.
struct Publishing {
  explicit Publishing(double per_s) : records(per_s), inputs(per_s) {}
  PublishRate records;
  PublishRate inputs;
  std::vector<std::uint64_t> ended;  ///< sequences of records
  std::vector<schema::DecisionInputs> read;
};

/// The inputs of a decision in a fleet of this many engines cost as much as so many of a few engines.
inline double cost_of_inputs(std::size_t engines) {
  return std::max(1.0, static_cast<double>(engines) / 64.0);
}
inline constexpr std::size_t most_input_rows = 8192;

}  // namespace signalbox::routing
