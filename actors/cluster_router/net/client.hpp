// HTTP/1.1 calls to one server over a bounded pool of its connections. The answer is told piece by piece, as it arrives.
//
// A pooled connection may be closed by its server at any time, also right after it promised to keep it (llama-server does). When one ends
// before a byte of the answer, the call starts over on a fresh connection, once, without telling anybody.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/http/head.hpp"
#include "actors/cluster_router/net/loop.hpp"
#include "actors/cluster_router/net/stream.hpp"
#include "actors/cluster_router/net/tls.hpp"

namespace signalbox::net {

/// How a call failed; the first ones before anything of the answer was told.
enum class CallFault : std::uint8_t {
  connect_failed,
  connect_timeout,
  handshake_failed,     ///< no TLS session with it could be made, or not in time
  untrusted,            ///< its certificate is not the expected one; it was sent nothing
  reset_before_answer,  ///< the connection ended before a whole head
  bad_answer,           ///< the head, or later the body's framing, is not HTTP/1.1
  first_byte_timeout,   ///< no byte of the answer's body in time
  gap_timeout,          ///< a pause inside the body
  total_timeout,
  truncated,  ///< the connection ended inside the body
};
std::string_view to_string(CallFault fault);
/// One sentence for people.
std::string_view describe(CallFault fault);

/// No wait is without end.
struct CallLimits {
  Duration connect = 2s;       ///< TLS handshake included
  Duration first_byte = 120s;  ///< from the connection to the first byte of the answer's body
  Duration gap = 60s;          ///< between two pieces of the body
  Duration total = 1h;
};

struct PoolSettings {
  /// Idle connections kept. Some engines give each connection a thread, and look dead when all are taken: keep it below that.
  std::size_t max_idle = 16;
  Duration idle_timeout = 5s;
  http::HeadLimits head;
  std::shared_ptr<const TlsClient> tls;  ///< null: plain TCP
};

/// Told about one call, never from inside Upstream::start(). Exactly one of on_end() and on_fault() comes, last; the call may be
/// destroyed from inside any of these.
class CallObserver {
 public:
  virtual void on_answer(const http::ResponseHead& head) = 0;
  virtual void on_body(std::string_view bytes) = 0;
  virtual void on_end() = 0;
  virtual void on_fault(CallFault fault) = 0;

 protected:
  ~CallObserver() = default;
};

class Upstream;
class UpstreamConnection;

/// One call under way. Destroying it cancels: the connection is closed, so the server learns it at once.
class Call {
 public:
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Tells this one from now on.
  void observe(CallObserver& observer) { observer_ = &observer; }
  /// Stops telling on_body() until resume().
  void pause();
  void resume();
  /// The whole request was handed to the kernel: its body is not needed any more.
  bool sent() const;
  /// This call had to give up a stale pooled connection.
  bool restarted() const { return restarted_; }

 private:
  friend class Upstream;
  friend class UpstreamConnection;
  Call(Upstream& upstream, std::string head, std::string_view body, bool bodiless, const CallLimits& limits,
       CallObserver& observer);
  void use(std::unique_ptr<UpstreamConnection> connection);
  void connect();
  void restart();
  void wait(CallFault or_else, Duration longest);
  void on_deadline();
  void fail(CallFault fault);

  Upstream& upstream_;
  std::string head_;
  std::string_view body_;
  CallLimits limits_;
  CallObserver* observer_;
  Timer timer_;
  Instant total_deadline_;
  std::unique_ptr<UpstreamConnection> connection_;
  CallFault due_ = CallFault::connect_timeout;  ///< what it means when the timer fires
  bool bodiless_;
  bool restarted_ = false;
};

/// One server and the connections to it.
class Upstream {
 public:
  Upstream(Loop& loop, Address address, PoolSettings settings);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  /// Sends `head` (through its empty line) and `body`, which must live until Call::sent(), at the end of the loop's turn. `bodiless`: a
  /// HEAD request.
  std::unique_ptr<Call> start(std::string head, std::string_view body, const CallLimits& limits,
                              CallObserver& observer, bool bodiless = false);
  /// Closes the idle connections: the server restarted, drains or left.
  void close_idle();
  std::size_t idle() const { return idle_.size(); }
  const Address& address() const { return address_; }
  /// Why the latest handshake failed, for people; empty while none has.
  const std::string& problem() const { return problem_; }

 private:
  friend class Call;
  friend class UpstreamConnection;
  void keep(std::unique_ptr<UpstreamConnection> connection);
  void drop_idle(UpstreamConnection& connection);
  void sweep();

  Loop& loop_;
  Address address_;
  PoolSettings settings_;
  std::string problem_;
  std::vector<std::unique_ptr<UpstreamConnection>> idle_;  ///< the most recently used last
  Timer sweep_;
};

}  // namespace signalbox::net
