// What is kept of a stream so that it could go on at another engine: the text so far. Only whole events go to the client
// meanwhile, so that nothing that it has had must be taken back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/cluster_router/http/continuation.hpp"
#include "actors/cluster_router/http/sse.hpp"

namespace signalbox::gateway {

/// Memory for all continuations of one event loop.
struct ContinuationMemory {
  std::size_t limit = 0;  ///< bytes; 0: nothing is continued
  std::size_t used = 0;
};

class Continuation {
 public:
  static constexpr std::size_t most_body_bytes = 1 << 20, most_text_bytes = 256 * 1024;

  /// `request_bytes`: of the request's body, which is kept as well.
  Continuation(ContinuationMemory& memory, http::Endpoint endpoint, std::size_t request_bytes);
  ~Continuation();
  Continuation(const Continuation&) = delete;
  Continuation& operator=(const Continuation&) = delete;

  /// The next bytes of an engine's stream; the answer: what goes to the client. Its bytes live until the next call.
  std::string_view take(std::string_view bytes);
  /// What take() holds back, when nothing is to be continued any more.
  std::string_view rest() const { return tail_; }

  /// The stream could go on elsewhere: it is plain text, it has not come to its end, and it was not too long.
  bool possible() const { return possible_; }
  /// It did.
  bool started() const { return started_; }
  /// The request that another engine would have to answer now. `body`: of the client's request. Errors: invalid, unavailable.
  Result<std::string> request_for_rest(std::string_view body) const;
  /// The engine broke, and another one is asked this.
  void start(std::string request);
  /// What the second engine is asked, once started.
  std::string_view body() const { return body_; }
  /// About how many the client has had; those of the text that the engine of now was given.
  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t given_tokens() const { return given_; }

 private:
  void give_up();
  bool reserve(std::size_t bytes);
  void read(std::string_view data);
  std::string_view continued(std::string_view events);

  ContinuationMemory& memory_;
  http::Endpoint endpoint_;
  std::size_t reserved_ = 0;
  bool possible_ = true;
  bool started_ = false;
  bool identified_ = false;
  std::string text_;  ///< of the answer so far
  std::string tail_;  ///< an incomplete event
  std::string out_;
  std::string body_;
  http::StreamIdentity identity_;
  http::SseReader reader_;
  std::uint64_t tokens_ = 0;
  std::uint64_t given_ = 0;
};

}  // namespace signalbox::gateway
