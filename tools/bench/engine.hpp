// An engine that costs next to nothing, to stand behind the proxies that are compared: 1 KB of JSON for a request, or a
// stream of events that carry the time at which they were sent.
//
// The prompt, which alone every router passes on unchanged, says which stream: "events=20 every_us=1000" is an event each
// millisecond; with every_us=0 they are sent as fast as the socket takes them. Any GET is answered with what the probes of known routers want to see.
#pragma once

#include <cstdint>
#include <span>

#include "messages/base/result.hpp"

namespace signalbox::bench {

/// Serves on these ports of 127.0.0.1 (0: a free one), prints them as JSON, until SIGTERM. Errors: io.
Status serve_engines(std::span<const std::uint16_t> ports);

}  // namespace signalbox::bench
