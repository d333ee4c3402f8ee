#include "cluster-config/schema/address.hpp"

#include <algorithm>
#include <charconv>

#include "cluster-config/schema/topology.hpp"

namespace signalbox::config {
namespace {

constexpr std::string_view address_hint = "write host:port, or +N for port_base + N on 127.0.0.1";

bool is_host(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    return !host.empty() && std::ranges::all_of(host, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
             c == '.';
    });
  }
  constexpr std::size_t longest_host = 253;
  return !host.empty() && host.size() <= longest_host && std::ranges::all_of(host, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_';
  });
}

Result<std::uint16_t> read_port(std::string_view text, std::uint16_t port_base) {
  const bool relative = text.starts_with('+');
  const std::string_view digits = text.substr(relative ? 1 : 0);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  if (relative) {
    if (!whole || number >= guard_offset)
      return invalid(fmt::format("'{}' is not a port offset", text), {},
                     fmt::format("offsets are +0 to +{}", guard_offset - 1));
    if (port_base == 0)
      return invalid(fmt::format("'{}' has no port to count from", text), {}, "set port_base");
    number += port_base;
  }
  if (!whole || number == 0 || number > 65'535)
    return invalid(fmt::format("'{}' is not a port", text), {}, "ports are 1 to 65535");
  return static_cast<std::uint16_t>(number);
}

Result<std::string> after_scheme(std::string_view scheme, std::string_view rest, std::uint16_t port_base) {
  return resolve_address(rest, port_base).map([scheme](const std::string& address) {
    return fmt::format("{}{}", scheme, address);
  });
}

}  // namespace

Result<std::string> resolve_address(std::string_view text, std::uint16_t port_base) {
  const std::size_t colon = text.rfind(':');
  const bool port_alone = text.starts_with('+') || colon == 0;
  if (colon == std::string_view::npos && !port_alone)
    return invalid(fmt::format("'{}' has no port", text.substr(0, 80)), {}, std::string(address_hint));
  const std::string_view host = port_alone ? "127.0.0.1" : text.substr(0, colon);
  const std::string_view port_text = text.starts_with('+') ? text : text.substr(colon + 1);
  if (!is_host(host))
    return invalid(fmt::format("'{}' is not a host", host.substr(0, 80)), {}, std::string(address_hint));
  const auto port = read_port(port_text, port_base);
  if (!port) return tl::unexpected(port.error());
  return fmt::format("{}:{}", host, *port);
}

Result<std::string> resolve_url(std::string_view text, std::uint16_t port_base) {
  for (const auto& [scheme, port] : {std::pair<std::string_view, int>{"http://", 80}, {"https://", 443}}) {
    if (!text.starts_with(scheme)) continue;
    std::string_view rest = text.substr(scheme.size());
    if (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.empty()) break;
    if (rest.find('/') != std::string_view::npos)
      return invalid(fmt::format("'{}' has a path", text.substr(0, 80)), {},
                     "write scheme, host and port only");
    const bool has_port =
        rest.starts_with('+') || rest.find(':', rest.find(']') + 1) != std::string_view::npos;
    return has_port ? after_scheme(scheme, rest, port_base)
                    : after_scheme(scheme, fmt::format("{}:{}", rest, port), port_base);
  }
  return invalid(fmt::format("'{}' is not a URL", text.substr(0, 80)), {}, "write http://host:port");
}

Result<std::string> resolve_endpoint(std::string_view text, std::uint16_t port_base) {
  if (text.starts_with("tcp://")) return after_scheme("tcp://", text.substr(6), port_base);
  if (text.starts_with("ipc://") && text.size() > 6) return std::string(text);
  return invalid(fmt::format("'{}' is not an endpoint", text.substr(0, 80)), {},
                 "write tcp://host:port or ipc://path");
}

std::string_view host_and_port(std::string_view address) {
  if (address.starts_with("ipc://")) return {};
  const std::size_t scheme = address.find("://");
  return scheme == std::string_view::npos ? address : address.substr(scheme + 3);
}

bool is_loopback(std::string_view address) {
  const std::string_view rest = host_and_port(address);
  const std::string_view host = rest.substr(0, rest.rfind(':'));
  return host.starts_with("127.") || host == "[::1]" || host == "localhost";
}

}  // namespace signalbox::config
