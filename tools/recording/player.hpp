// Plays a recording on a private bus: a forwarder in a folder that only this user may enter, where every tool can
// listen. Messages come in their recorded order and distance, with the ages that they had; nobody can speak to the
// processes that are heard.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "messages/bus/endpoint.hpp"
#include "messages/bus/forwarder.hpp"
#include "tools/recording/reader.hpp"

namespace signalbox::recording {

inline constexpr std::string_view player_id = "player";

/// Where the bus of a replay in this folder is found.
bus::ForwarderEndpoints endpoints_in(const std::string& folder);
/// The recording's header as text, left there for the tools that listen.
std::string header_file(const std::string& folder);

struct PlayerOptions {
  std::string folder;        ///< made if it is missing; must be private
  double speed = 1;          ///< recorded seconds a second; 0: as fast as they can be sent
  Instant from = never_yet;  ///< by the recording's clock; what came before is said at once
};

class Player {
 public:
  /// Binds the forwarder. Errors: denied for a folder that others may enter, conflict if a replay runs there.
  static Result<std::unique_ptr<Player>> start(Reader reader, PlayerOptions options);
  virtual ~Player() = default;
  /// Says what is due; how long until something is due again, or nothing at the end.
  virtual std::optional<Duration> step() = 0;
  virtual std::uint64_t said() const = 0;
  virtual const Reader& reader() const = 0;
};

}  // namespace signalbox::recording
