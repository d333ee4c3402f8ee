// An HTTP/1.1 server on a Loop: keep-alive, pipelining, bodies in both framings, streams with back-pressure,
// strict about framing, with a limit on every wait. A handler gets whole requests and a ResponseWriter for
// each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/http/head.hpp"
#include "actors/cluster_router/net/loop.hpp"
#include "actors/cluster_router/net/server_group.hpp"
#include "actors/cluster_router/net/stream.hpp"
#include "actors/cluster_router/net/tls.hpp"
#include "messages/base/result.hpp"

namespace signalbox::net {

struct ServerSettings {
  http::HeadLimits head;
  std::size_t max_body_bytes = 64u << 20;
  Duration handshake_timeout = 10s;  ///< of TLS
  Duration head_timeout = 10s;       ///< from a request's first byte to the end of its head
  Duration body_timeout = 30s;       ///< between two pieces of a request's body
  /// The whole body may take body_timeout and the time that its bytes need at this rate: who trickles is ended.
  std::size_t body_bytes_per_s = 1024;
  Duration idle_timeout = 75s;   ///< of a connection between requests
  Duration stall_timeout = 60s;  ///< of a client that takes nothing of what waits for it
  std::size_t high_water_bytes =
      256 * 1024;  ///< of one answer's unsent bytes; over it write() asks for a pause
  std::size_t max_connections = 16 * 1024;  ///< more wait in the kernel's queue
};

class ServerConnection;

/// A whole request. Its views live until release_request() or the end of the answer. At least 64 readable
/// bytes follow the body, as simdjson wants them.
struct Request {
  http::RequestHead head;
  std::string_view body;
};

/// Told about the client of one answer. After on_client_gone() nothing more is told.
class ResponseObserver {
 public:
  /// The client closed its connection, or stopped taking bytes; the answer cannot be delivered.
  virtual void on_client_gone() = 0;
  /// After write() returned false: there is room again.
  virtual void on_writable() {}

 protected:
  ~ResponseObserver() = default;
};

/// The answer to one request: either respond(), or begin(), write()..., finish(). Once the client is gone all
/// of them do nothing. Bytes leave at the end of the loop's turn. A writer that is dropped without an answer
/// resets the connection.
class ResponseWriter {
 public:
  explicit ResponseWriter(ServerConnection& connection) : connection_(&connection) {}
  ~ResponseWriter();
  ResponseWriter(const ResponseWriter&) = delete;
  ResponseWriter& operator=(const ResponseWriter&) = delete;

  const Request& request() const { return request_; }
  /// Gives the request's memory back once nothing needs it any more; its views are then empty.
  void release_request();

  /// A whole answer. Content-Length and Connection are added; `fields` must not hold them.
  void respond(int status, std::span<const http::Field> fields, std::string_view body);
  /// The head of a streamed answer, chunked unless `length` is known (or the client speaks HTTP/1.0: then the
  /// end is the close).
  void begin(int status, std::span<const http::Field> fields, std::optional<std::uint64_t> length = {});
  /// The same with the fields as lines that end in CR LF each; `dated` says that a Date is among them.
  void begin_with_lines(int status, std::string_view field_lines, std::optional<std::uint64_t> length = {},
                        bool dated = false);
  /// More field lines for the answer's head, whoever begins it.
  void add_lines(std::string_view field_lines) { added_lines_ += field_lines; }
  /// A piece of the body. False: more than the high-water mark waits; write no more until on_writable().
  bool write(std::string_view bytes);
  /// The end of a streamed answer.
  void finish();
  /// Ends the answer so that the client sees that it is incomplete.
  void abort();

  /// At most one; nullptr for none. It must outlive the answer or be taken away.
  void observe(ResponseObserver* observer) { observer_ = observer; }
  bool head_sent() const { return begun_; }
  /// The answer is finished, or its client is gone.
  bool ended() const { return connection_ == nullptr; }
  /// Bytes of this connection that the kernel has not taken yet.
  std::size_t waiting_bytes() const;

 private:
  friend class ServerConnection;
  enum class Body : std::uint8_t { none, plain, chunked };

  ServerConnection* connection_;
  ResponseObserver* observer_ = nullptr;
  Request request_;
  std::string bytes_;   ///< head, and body when it has a Content-Length
  std::string chunks_;  ///< body when it came chunked
  std::string added_lines_;
  Body framing_ = Body::none;
  bool begun_ = false;
};
using ResponseWriterPtr = std::shared_ptr<ResponseWriter>;

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// A whole request has arrived; answer now or later. The request is writer->request().
  virtual void on_request(ResponseWriterPtr writer) = 0;
  /// The server itself refused a request with this status; for counting.
  virtual void on_refused(int status, std::string_view reason) { (void)status, (void)reason; }
};

/// Totals since the start.
struct ServerCounters {
  std::uint64_t accepted = 0;           ///< connections
  std::uint64_t handshakes = 0;         ///< of these, TLS handshakes done
  std::uint64_t handshakes_failed = 0;  ///< ended without one, too slow ones included
  std::uint64_t in_the_clear = 0;       ///< did not speak TLS where TLS is spoken
};

class HttpServer final : private Watcher {
 public:
  HttpServer(Loop& loop, HttpHandler& handler, ServerSettings settings);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Shares the connections that any of the group accepts; `max_connections` is then the whole group's. Before it accepts. The group
  /// outlives it.
  void join(ServerGroup& group) {
    group_ = &group;
    member_ = &group.add(*this, loop_);
  }
  /// Speaks TLS on the connections that come from now on; null: plain HTTP.
  void use_tls(std::shared_ptr<const TlsServer> tls) { tls_ = std::move(tls); }
  const std::shared_ptr<const TlsServer>& tls() const { return tls_; }
  /// bind() and open().
  Status listen(const Address& address, bool share_port = false);
  /// Takes the port, 0 for a free one, and accepts nothing yet. `share_port`: other loops or processes have it too.
  Status bind(const Address& address, bool share_port = false);
  /// Begins to accept; a second call does nothing, nor does one without a port. Errors: io.
  Status open();
  /// The port that was bound; 0 before.
  std::uint16_t port() const { return port_; }
  /// Lets another process that shares the port have all new connections, if there is one. What comes here until drain() is
  /// still served, and every connection ends after its answer. False: nobody else is there.
  bool hand_over();
  /// Accepts no more, closes idle connections, and the others after their answer.
  void drain();
  bool draining() const { return draining_; }
  std::size_t connections() const { return connections_.size(); }
  const ServerCounters& counters() const { return counters_; }
  /// A request is being read or answered, or a part of an answer waits to be sent.
  bool busy() const;

 private:
  friend class ServerConnection;
  void on_ready(std::uint32_t events) override;
  void pause_accepting(Duration longest);
  void resume_accepting();
  void accept(Fd fd);
  void take(Fd fd);
  bool full() const;
  bool takes_own_connection();
  void forget(ServerConnection& connection);
  std::string_view date_line();

  Loop& loop_;
  HttpHandler& handler_;
  ServerSettings settings_;
  ServerCounters counters_;
  std::shared_ptr<const TlsServer> tls_;
  Fd listener_;
  std::uint16_t port_ = 0;
  bool accepting_ = false;
  bool open_ = false;
  bool closing_ = false;  ///< connections end after their answer
  bool draining_ = false;
  std::string date_line_;
  Instant date_until_ = never_yet;  ///< when date_line_ may be a second late
  Timer accept_again_;
  ServerGroup* group_ = nullptr;  ///< null: it serves all that it accepts
  ServerGroup::Member* member_ = nullptr;
  std::vector<std::unique_ptr<ServerConnection>> connections_;
};

/// An OpenAI-shaped error as the whole answer; `reason` also goes into x-signalbox-reason.
void respond_error(ResponseWriter& writer, int status, std::string_view reason, std::string_view message);

}  // namespace signalbox::net
