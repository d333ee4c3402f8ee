// Where an observer learns what it shows: from a fleet's bus, from a recording, or from a replay of one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/bus/node.hpp"
#include "tools/cli/fleet.hpp"
#include "tools/fleet_view/timeline.hpp"
#include "tools/fleet_view/view.hpp"
#include "tools/recording/reader.hpp"

namespace signalbox::cli {

/// As given on the command line.
struct SourceOptions {
  FleetOptions fleet;
  std::string recording;       ///< a file instead of a bus
  std::optional<double> at_s;  ///< since the recording's begin; negative: before its end
  std::string bus;             ///< the folder of a replay, instead of the fleet's bus
};

/// Adds the fleet's options, --recording, --at and --bus.
void add_source_options(CLI::App& command, SourceOptions& options);

struct Source {
  Fleet fleet;
  bool replayed = false;  ///< nobody can be asked: only what is said can be heard
  std::optional<recording::Reader> recording;
  Instant until = end_of_time;  ///< of a recording
};

/// Errors: as open_fleet(), as Reader::open(), invalid for options that exclude each other.
Result<Source> open_source(const SourceOptions& options);

/// Joins the source's bus under the tools' name; of a source that is no recording.
Result<std::unique_ptr<bus::Node>> join_source(const Source& source, std::vector<std::string> subscriptions,
                                               bus::NodeHandlers handlers);

/// What was heard, and the time that it is seen from.
struct Observation {
  fleet_view::FleetView view;
  fleet_view::Timeline timeline;
  Instant now;
};

/// Listens until `enough` says so, or until `longest` has passed; a recording is read up to its end or `until`. Errors:
/// as join_bus(), and unavailable if no forwarder was there.
Result<Observation> observe(Source& source, std::vector<std::string> subscriptions, Duration longest,
                            const std::function<bool(const fleet_view::FleetView&)>& enough);

/// Tells on stderr what of a recording could not be read or is not known to this build.
void tell_damage(const recording::Reader& reader);

}  // namespace signalbox::cli
