// Fetches pages over HTTP, many at a time, on one thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/cluster_router/net/tls.hpp"
#include "actors/engine_proxy/machine/machine.hpp"

namespace signalbox::engine_proxy {

class Fetcher {
 public:
  struct Limits {
    std::size_t connections = 256;      ///< open at once; more wait
    std::size_t body_bytes = 8u << 20;  ///< of one page; a longer one is malformed
  };
  using Done = std::function<void(ScrapeResult result)>;

  explicit Fetcher(Limits limits);
  ~Fetcher();

  /// How an engine is reached: whom to recognise (null: it has no https), and the key that it wants (empty: none).
  struct Access {
    std::shared_ptr<const net::TlsClient> trust;
    std::string api_key;
  };
  /// Thread-safe; never waits. `done` is called on the fetcher's thread, once, unless the fetcher ends first.
  void start(const StartScrape& what, Access access, Done done);

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace signalbox::engine_proxy
