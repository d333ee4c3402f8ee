// Which web pages may call this router from a browser, and read its answers (the Fetch standard's CORS protocol).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/http/head.hpp"

namespace signalbox::gateway {

class Cors {
 public:
  /// Origins as browsers send them; "*" is all of them.
  explicit Cors(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  /// The field lines that let the page that sent this request read the answer; empty for a stranger's and for clients that are
  /// no browsers.
  std::string answer_lines(const http::Fields& request) const;
  /// The answer to a page that asks what it may send (Access-Control-Request-Method).
  std::string preflight_lines(const http::Fields& request) const;

 private:
  bool allows(std::string_view origin) const;

  std::vector<std::string> origins_;
};

}  // namespace signalbox::gateway
