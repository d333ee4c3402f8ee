// The console's web server: files of the page, the fleet as JSON, live over server-sent events.
//
//   GET /            the page            GET /events          a state each half second
//   GET /fleet       names               GET /history         what came before
//   GET /engine/E    why its weights     GET /explain/ID      one decision
//   GET /reasons/ID  why the plan that it read gave its weights
//   POST /replay     of a recording: {"held": true} or {"at_s": 12.5}
#pragma once

#include <string>

#include "messages/base/result.hpp"
#include "tools/cli/source.hpp"

namespace signalbox::console {

struct ConsoleOptions {
  cli::SourceOptions source;
  std::string listen = "127.0.0.1:8090";
  double speed = 1;      ///< of a recording
  double every_s = 0.5;  ///< from state to state
};

/// Serves until SIGINT or SIGTERM. Errors: as open_source() and HttpServer::listen(), unavailable where the page is not
/// built in.
Status console(const ConsoleOptions& options);

}  // namespace signalbox::console
