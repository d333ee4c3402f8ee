// The live, decoded view of the bus. It can only listen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/cli/source.hpp"
#include "tools/observe/filter.hpp"

namespace signalbox::observe {

struct TapOptions {
  cli::SourceOptions source;  ///< its bus is, of replay, the folder of a private bus on which it is played
  Filter filter;
  bool json = false;
  bool full = false;                 ///< every field instead of a line
  bool quiet = false;                ///< show no messages
  bool stats = false;                ///< a table of who says how much at the end
  double every_s = 0;                ///< of stats: also this often
  bool diff = false;                 ///< what changed from snapshot to snapshot
  std::vector<std::string> between;  ///< of diff: these two versions only
  bool drops = false;                ///< tell on stderr what was refused, and why
  std::uint64_t most = 0;            ///< messages; 0: no end
  double seconds = 0;                ///< 0: no end
  std::string follow;                ///< a decision, or "next": show its journey instead
  std::string record;                ///< a new file for what passes the filter
  std::string replay;                ///< a file instead of the bus
  std::optional<double> speed;       ///< of replay: recorded seconds a second; absent: at once
};

/// Prints until `most`, `seconds`, SIGINT or SIGTERM. Errors: unavailable if no forwarder was there.
Status tap(const TapOptions& options);

}  // namespace signalbox::observe
