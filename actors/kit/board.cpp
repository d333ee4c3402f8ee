#include "actors/kit/board.hpp"

#include <fmt/format.h>

namespace signalbox::kit {

Standing Board::merged() const {
  const std::lock_guard lock(mutex_);
  if (standings_.empty()) return {};
  if (standings_.size() == 1) return standings_.begin()->second;
  Standing out;
  std::size_t ready = 0;
  std::string worst;
  for (const auto& [name, standing] : standings_) {
    if (standing.ready)
      ++ready;
    else if (worst.empty())
      worst = standing.state;
    out.leads = out.leads || standing.leads;
    out.term = std::max(out.term, standing.term);
    out.snapshot = std::max(out.snapshot, standing.snapshot);
    if (!standing.policy.is_zero()) out.policy = standing.policy;
  }
  out.ready = ready == standings_.size();
  out.state = fmt::format("{} of {} ready", ready, standings_.size());
  if (!worst.empty()) out.state += "; " + worst;
  return out;
}

}  // namespace signalbox::kit
