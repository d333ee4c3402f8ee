// Addresses as configurations write them. Text only: nothing is looked up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "messages/base/result.hpp"

namespace signalbox::config {

/// "host:port". A port "+7" is `port_base` + 7; "+7" alone and ":8080" are on 127.0.0.1. Errors: no port, a port that is not
/// 1 to 65535, an offset without a port base or beyond its block, a host with a character that no host has.
Result<std::string> resolve_address(std::string_view text, std::uint16_t port_base);

/// An "http://" or "https://" URL of host and port, without path; the port as above, 80 or 443 when there is none.
Result<std::string> resolve_url(std::string_view text, std::uint16_t port_base);

/// A ZeroMQ endpoint: "tcp://host:port" with a port as above, or "ipc://path".
Result<std::string> resolve_endpoint(std::string_view text, std::uint16_t port_base);

/// True for 127.0.0.0/8, [::1] and localhost in "host:port", "scheme://host:port".
bool is_loopback(std::string_view address);

/// The "host:port" of an address, URL or tcp endpoint; empty for ipc.
std::string_view host_and_port(std::string_view address);

}  // namespace signalbox::config
