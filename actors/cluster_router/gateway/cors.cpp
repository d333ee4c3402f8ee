#include "actors/cluster_router/gateway/cors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace signalbox::gateway {
namespace {

constexpr std::string_view readable =
    "x-request-id, x-signalbox-decision, x-signalbox-engine, x-signalbox-snapshot, x-signalbox-attempts, "
    "x-signalbox-reason, retry-after";
constexpr int remembered_s = 7200;  // the longest that Chromium takes

}  // namespace

bool Cors::allows(std::string_view origin) const {
  return std::ranges::any_of(origins_, [&](std::string_view each) { return each == "*" || each == origin; });
}

std::string Cors::answer_lines(const http::Fields& request) const {
  if (origins_.empty()) return {};
  const auto origin = http::find(request, "origin");
  if (!origin || !allows(*origin)) return "vary: origin\r\n";
  return fmt::format(
      "access-control-allow-origin: {}\r\naccess-control-expose-headers: {}\r\nvary: origin\r\n", *origin,
      readable);
}

std::string Cors::preflight_lines(const http::Fields& request) const {
  const auto origin = http::find(request, "origin");
  if (!origin || !allows(*origin)) return "vary: origin\r\n";
  std::string out = fmt::format(
      "access-control-allow-origin: {}\r\naccess-control-allow-methods: GET, HEAD, POST\r\n"
      "access-control-max-age: {}\r\nvary: origin, access-control-request-headers\r\n",
      *origin, remembered_s);
  // Whatever the page asks to send: engines have fields of their own, and none is a credential of the browser.
  if (const auto asked = http::find(request, "access-control-request-headers"))
    out += fmt::format("access-control-allow-headers: {}\r\n", *asked);
  return out;
}

}  // namespace signalbox::gateway
