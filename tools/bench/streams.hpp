// A client that holds many streams at once and knows of every event when it was sent (`signalbox bench engine` writes
// that into it): the time to the first event, the time that each spends on its way, and what failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "messages/base/result.hpp"

namespace signalbox::bench {

struct StreamLoad {
  std::string url;  ///< host:port or http://host:port
  std::string path = "/v1/chat/completions";
  std::string model = "m";
  std::vector<std::string> fields;  ///< "name: value", added to each request
  std::size_t at_once = 1;
  std::size_t total = 1;  ///< streams in all; connections are used again
  std::uint64_t events = 10;
  std::uint64_t every_us = 0;  ///< between a stream's events; 0: as fast as they come
  std::size_t prompt_bytes = 1'000;
  std::int64_t longest_s = 120;  ///< what is not done by then has failed
};

/// Prints "open N" when `at_once` streams have had their first event, and at the end the figures as JSON.
/// Errors: io, invalid.
Status run_streams(const StreamLoad& load);

}  // namespace signalbox::bench
