// What an event loop hands to its actor: counts since the last batch, in the shape of the messages that carry them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/base/digest.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/inputs.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

/// Why no session with an engine could be made, in words that the counts have no room for.
struct EngineProblem {
  EngineName engine;
  bool untrusted = false;  ///< its certificate is not the one that the fleet table names
  std::string text;
};

/// Counts of one loop between two drains. The actor adds the loops' batches up into reports, and remembers the last
/// batch number of each loop in each report: when a snapshot covers a report, these go into ViewInputs::covered_batches
/// and end the penalties that the plan has seen.
struct Batch {
  std::uint32_t loop = 0;
  std::uint64_t number = 0;  ///< from 1 without gaps: a lost batch shows
  Instant from = never_yet;
  Instant until = never_yet;
  Digest policy;  ///< whose classes the rows index
  Digest table;   ///< whose engines the rows index
  std::vector<schema::DemandRow> demand;
  std::vector<schema::OutcomeRow> outcomes;
  std::vector<schema::ServedRow> served;
  std::vector<schema::HotGroupRow> groups;
  std::vector<schema::SentRow> sent;  ///< in an order in which a receiver may forget from the front
  std::uint32_t block_bytes = 0;
  std::uint64_t sent_dropped = 0;       ///< sent rows that found no place
  std::vector<EngineProblem> problems;  ///< the latest of each engine that has one
  std::uint64_t retries_denied =
      0;  ///< failed attempts that only the retry budget kept from being tried again
  std::uint32_t open = 0;
  std::uint32_t waiting = 0;
  std::vector<schema::DecisionRecord> records;  ///< decisions that ended, where somebody listens
  std::vector<schema::DecisionInputs> inputs;   ///< what decisions read, likewise
};

}  // namespace signalbox::routing
