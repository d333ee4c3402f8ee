// The clauses that are lists of named numbers ("stale signal soft 1s hard 5s ..."), one row a number: the one table behind
// their reading, bounds, defaults, canonical text and documentation. A new number is one row here and one field in
// compiled.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cluster-config/policy/quantity.hpp"

namespace signalbox::policy {

struct Knob {
  std::string_view clause;  ///< "stale"
  std::string_view group;   ///< "signal": said once before the words that belong to it; may be empty
  std::string_view word;    ///< "soft"
  Dimension dimension;
  double low, high;        ///< in base units, both included
  std::string_view after;  ///< words that follow the number and say no more ("of engines"); may be left out
  std::string_view sentence;
  double (*get)(const CompiledPolicy&);
  void (*set)(CompiledPolicy&, double);
  /// Came after the first version: not in the canonical text while it has its default, so that processes of the version
  /// before, which do not know it, find the same hash of a policy that does not use it.
  bool later = false;
};

/// Words of a clause that state what is always so ("before first_byte").
struct Promise {
  std::string_view clause;
  std::string_view words;
};

/// In the order of the canonical text; the rows of one clause are neighbours, and so are those of one group.
std::span<const Knob> knobs();
std::span<const Promise> promises();

/// One row of a Markdown table for each number: what it is called, its unit and bounds, its default, its sentence.
std::string numbers_as_markdown();

}  // namespace signalbox::policy
