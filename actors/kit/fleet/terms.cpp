#include "actors/kit/fleet/terms.hpp"

#include <algorithm>

namespace signalbox::kit {

bool is_plausible(std::uint64_t counter, std::uint64_t known, std::uint64_t epoch) {
  if (epoch_of(counter) > epoch) return false;  // nobody raised the epoch here
  const std::uint64_t base = std::max(known, first_counter(epoch_of(counter)));
  // A process that knows nothing of this epoch yet, as one that was just started, learns what is there.
  if (known < first_counter(epoch_of(counter)) || known == first_counter(epoch)) return true;
  return counter <= base + most_term_jump;
}

}  // namespace signalbox::kit
