// A table of paths and what answers them: how a process serves its operators (/healthz, /metrics, ...).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "actors/cluster_router/net/server.hpp"

namespace signalbox::net {

/// An answer that is known at once.
struct Answer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};
Answer json_answer(int status, std::string body);

/// Serves GET (and HEAD) and POST by exact path, or by the longest prefix that ends in '/'. Everything else is 404 or 405.
class Endpoints final : public HttpHandler {
 public:
  /// What answers a request; `rest` is the path after a prefix, else empty. Called on the loop's thread.
  using Function = std::function<Answer(const Request& request, std::string_view rest)>;

  void get(std::string path, Function answer) { gets_[std::move(path)] = std::move(answer); }
  void post(std::string path, Function answer) { posts_[std::move(path)] = std::move(answer); }

  void on_request(ResponseWriterPtr writer) override;

 private:
  using Table = std::map<std::string, Function, std::less<>>;
  static const Function* find(const Table& table, std::string_view path, std::string_view& rest);

  Table gets_, posts_;
};

}  // namespace signalbox::net
