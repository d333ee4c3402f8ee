// One connection to a server: carries one call at a time, or waits in the pool.
#pragma once

#include "actors/cluster_router/http/chunked.hpp"
#include "actors/cluster_router/net/client.hpp"

namespace signalbox::net {

class UpstreamConnection final : public Disposable, private Watcher {
 public:
  UpstreamConnection(Upstream& upstream, std::unique_ptr<Stream> stream);
  ~UpstreamConnection() override;

  /// Starts to carry a call; `fresh` is a connection that is still being made.
  void carry(Call& call, bool fresh);
  /// Parts from the call, closes, and disposes of itself.
  static void end(std::unique_ptr<UpstreamConnection> connection);
  void set_paused(bool paused);
  bool sent() const { return sent_ == wanted_; }

  Instant idle_since;

 private:
  friend class Upstream;
  enum class Phase : std::uint8_t { connecting, opening, head, body, idle, closed };

  void on_ready(std::uint32_t events) override;
  bool open();
  void connected();
  void send();
  void read();
  void take(std::string_view bytes);
  void take_head(std::string_view bytes);
  void take_body(std::string_view bytes);
  void take_chunks(std::string_view bytes);
  bool tell_body(std::string_view bytes);
  void begin_body(std::string_view rest);
  void peer_ended(bool orderly);
  void complete(bool clean);
  void close();

  Upstream& upstream_;
  std::unique_ptr<Stream> stream_;
  Call* call_ = nullptr;
  std::string partial_head_;
  http::ResponseHead head_;
  http::ChunkedDecoder chunks_;
  std::uint64_t left_ = 0;  ///< of a body with a length
  std::size_t sent_ = 0, wanted_ = 0;
  Phase phase_ = Phase::connecting;
  std::uint8_t interim_ = 0;  ///< 1xx answers of this call so far
  bool reused_ = false;
  bool readable_ = false;
  bool hung_up_ = false;
  bool paused_ = false;
};

}  // namespace signalbox::net
