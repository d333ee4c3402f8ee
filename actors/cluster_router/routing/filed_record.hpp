// A decision as the router's ring file keeps it: 128 bytes, of fixed layout, little-endian. Enough to say after a restart
// who was chosen over whom and for what, when, and what came of it; costs are rounded to three digits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "actors/cluster_router/routing/record.hpp"
#include "actors/cluster_router/routing/verdict.hpp"
#include "messages/base/digest.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

static_assert(std::endian::native == std::endian::little, "ring files are written as they lie in memory");

/// The chosen candidate and the next best one. Costs are network, queue, prefill, decode, price, in that order, each the
/// upper half of a 32-bit float.
struct FiledCosts {
  std::array<std::array<std::uint16_t, 5>, 2> cost_s{};
  std::uint16_t next_best = UINT16_MAX;  ///< its engine; none: nobody else was priced
  std::uint8_t compared = 0;             ///< candidates that were priced; 0: nobody was chosen
  schema::CandidateFate next_fate = schema::CandidateFate::dearer;
};

struct FiledRecord {
  std::uint64_t life = 0;  ///< of its DecisionId; 0: nothing was written here yet
  std::uint64_t count = 0;
  std::uint64_t seed = 0;
  std::int64_t arrived_us = 0;  ///< by the loop's monotonic clock; in the file since 1970
  std::uint32_t names = 0;      ///< fingerprint of the policy and the fleet table that its rows index
  std::uint32_t term = 0, sequence = 0;
  std::uint32_t took_us = 0;  ///< 0: it was open when this was written
  float prompt_tokens = 0, output_tokens = 0;
  std::array<std::array<std::uint32_t, 3>, 2> times_us{};  ///< of attempts: began, first byte, ended
  std::array<std::uint16_t, 2> engines{UINT16_MAX, UINT16_MAX};
  std::array<std::uint16_t, 2> statuses{};
  std::array<schema::AttemptEnd, 2> ends{};
  std::uint16_t request_class = UINT16_MAX;
  std::uint16_t status = 0;
  std::uint16_t snapshot_age_s = 0;  ///< the upper half of a 32-bit float
  FiledCosts costs;
  schema::RefuseReason refused = schema::RefuseReason::none;
  policy::Rule rule = policy::Rule::matched;
  std::uint8_t attempts = 0;
  std::uint8_t flags = 0;      ///< degraded, sticky, and in the upper half how often it was continued
  std::uint32_t checksum = 0;  ///< over all bytes before it

  static constexpr std::uint8_t degraded = 1, sticky = 2;
};
static_assert(sizeof(FiledRecord) == 128 && std::is_trivially_copyable_v<FiledRecord>);
static_assert(std::has_unique_object_representations_v<FiledCosts>);

FiledCosts costs_of(const RecordDetail& detail);
FiledRecord filed(std::uint64_t life, const RecordCore& core, const FiledCosts& costs);

/// Sets the checksum. Anything that was torn, or never written, is not sound.
void seal(FiledRecord& record);
bool is_sound(const FiledRecord& record);

/// What the rows of filed records stand for: kept beside them, since after a restart policy and table may be others.
struct FiledNames {
  std::string cluster;
  Digest policy, table;
  struct Class {
    std::string name, model;
    int line = 0;  ///< of the policy
  };
  std::vector<Class> classes;
  std::vector<std::string> engines;
};
std::uint32_t fingerprint_of(const policy::CompiledPolicy& policy, const schema::FleetTable& table);
/// As lines of text, whole ones, at most so many bytes: the last engines are left out when there are too many.
std::string names_text(const ClusterName& cluster, const policy::CompiledPolicy& policy,
                       const schema::FleetTable& table, std::size_t most_bytes);
FiledNames parse_names(std::string_view text);

/// The message, as far as it is known. `names`: null if they are not.
schema::DecisionRecord as_message(const FiledRecord& record, const FiledNames* names);

}  // namespace signalbox::routing
