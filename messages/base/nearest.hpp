// The nearest known name to a misspelt one, for hints.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace signalbox {

/// Least number of insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the least distance, if that is at most a third of the word's length (at least 1, at most 3); the first
/// of equals. Empty when none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// "did you mean 'x'?", or "known: a, b, c" (at most 12), or nothing when there are no candidates.
std::string name_hint(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace signalbox
