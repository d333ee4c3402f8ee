// One client's connection: reads requests one after the other, and carries the answer to the current one.
#pragma once

#include "actors/cluster_router/http/chunked.hpp"
#include "actors/cluster_router/net/server.hpp"

namespace signalbox::net {

class ServerConnection final : public Disposable, private Watcher {
 public:
  /// `opens`: the stream has a handshake before its first byte.
  ServerConnection(HttpServer& server, std::unique_ptr<Stream> stream, bool opens);
  ~ServerConnection() override;

  std::size_t index = 0;  ///< in the server's list

  // What a ResponseWriter does.
  void send_head(ResponseWriter& writer, int status, std::string_view field_lines,
                 std::optional<std::uint64_t> length, bool dated);
  bool send_body(ResponseWriter& writer, std::string_view bytes);
  void finish(ResponseWriter& writer);
  void abort();
  void release_request(ResponseWriter& writer);
  std::size_t waiting_bytes() const { return out_.size() - sent_; }

  /// Not between requests, nor only waiting for the client to open or to close.
  bool busy() const { return phase_ > Phase::idle && phase_ < Phase::lingering; }
  /// Closes now if no request is being read or answered, else after the answer.
  void close_when_idle();
  void close();

 private:
  enum class Phase : std::uint8_t { idle, head, body, answering, flushing, lingering, opening, closed };

  void on_ready(std::uint32_t events) override;
  void open(std::uint32_t events);
  void opened();
  bool wants_input() const { return phase_ <= Phase::body || phase_ == Phase::lingering; }
  void read();
  void take(std::string_view bytes);
  void make_room(std::size_t more);
  void begin_request();
  void advance();
  void read_head();
  void begin_body();
  void wait_for_body(std::size_t so_far);
  void read_body();
  void read_chunks();
  void hand_over();
  ResponseWriterPtr begin_answer();
  void part_from(ResponseWriter& writer);
  void refuse(http::Fault fault);
  void refuse(int status, std::string_view reason, std::string_view message);
  void queue_flush();
  void flush();
  void flushed();
  void next_request();
  void linger();
  void client_gone();
  void on_deadline();

  HttpServer& server_;
  std::unique_ptr<Stream> stream_;
  Timer timer_;
  ResponseWriterPtr writer_;           ///< of the request that is being read
  ResponseWriter* current_ = nullptr;  ///< of the request that is being answered; its handler owns it
  std::string out_;                    ///< unsent bytes begin at sent_
  std::size_t sent_ = 0;
  std::string pipelined_;  ///< what came after the current request
  http::ChunkedDecoder chunks_;
  std::size_t head_bytes_ = 0;  ///< of the current request
  std::size_t body_read_ = 0;   ///< bytes after the head that the chunked decoder is done with
  std::size_t head_seen_ = 0;
  Instant body_began_;
  Phase phase_;
  bool readable_ = false;
  bool peer_ended_ = false;
  bool close_after_ = false;
  bool flush_queued_ = false;
  bool paused_writer_ = false;
};

}  // namespace signalbox::net
