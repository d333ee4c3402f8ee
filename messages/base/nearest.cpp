#include "messages/base/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace signalbox {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > 128) return {};
  std::size_t best = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > 128) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

std::string name_hint(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t shown = 12;
  if (const std::string_view found = nearest(word, candidates); !found.empty())
    return fmt::format("did you mean '{}'?", found);
  if (candidates.empty()) return {};
  const auto listed = candidates.first(std::min(shown, candidates.size()));
  return fmt::format("known: {}{}", fmt::join(listed, ", "), candidates.size() > shown ? ", ..." : "");
}

}  // namespace signalbox
