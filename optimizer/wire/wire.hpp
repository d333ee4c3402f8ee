// How a solve travels between the optimizer and its solver child: one MessagePack array of scalars and
// little-endian columns in binary, every number checked on arrival. Private to one build: both ends are
// installed together, so there are no versions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "optimizer/model/plan.hpp"
#include "optimizer/model/problem.hpp"
#include "optimizer/model/warm.hpp"

namespace signalbox::optimizer {

/// The greatest message, in bytes: a problem of 2 million pairs with room to spare.
inline constexpr std::uint32_t max_message_bytes = 256u << 20;

struct SolveRequest {
  std::uint64_t id = 0;  ///< repeated in the reply
  Problem problem;
  SolveOptions options;
  WarmState warm;
};

struct SolveReply {
  std::uint64_t id = 0;
  Result<Plan> plan;
};

std::vector<std::uint8_t> encode(const SolveRequest& request);
std::vector<std::uint8_t> encode(const SolveReply& reply);
/// Refuses what is malformed, oversized, non-finite or fails check(problem).
Result<SolveRequest> decode_request(std::span<const std::uint8_t> bytes);
/// Refuses what is malformed, oversized, non-finite, negative or not of this problem's size.
Result<SolveReply> decode_reply(std::span<const std::uint8_t> bytes, const Problem& problem);

/// Four bytes, little-endian: the length of the message that follows it in the pipe.
std::array<std::uint8_t, 4> length_prefix(std::size_t bytes);
std::uint32_t read_length(std::span<const std::uint8_t, 4> prefix);

}  // namespace signalbox::optimizer
