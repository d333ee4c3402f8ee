// A connected byte stream behind one interface, whatever carries it, and the few socket calls that make one.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"

namespace signalbox::net {

/// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

enum class Io : std::uint8_t { done, would_block, ended, failed };
struct IoResult {
  Io state = Io::done;
  std::size_t bytes = 0;  ///< with `done`
  bool more = false;      ///< of a read: there may be more that no event will tell of
};

/// What came of Stream::open().
enum class Opened : std::uint8_t {
  ready,        ///< bytes may pass
  would_block,  ///< to be asked again on the next event
  failed,       ///< problem() says why
  untrusted,    ///< the server's certificate is not the expected one; problem() says what it is instead
  in_the_clear  ///< the client does not speak TLS; from now on bytes pass as they are, so that it can be told
};

/// A non-blocking connection. `ended` is the peer's orderly end, `failed` a reset or another error.
class Stream {
 public:
  virtual ~Stream() = default;
  /// What has to pass before the first byte, once TCP's connection stands: the handshake of a stream that has one.
  virtual Opened open() { return Opened::ready; }
  /// After open() failed: what happened, for people.
  virtual std::string problem() const { return {}; }
  virtual IoResult read(std::span<char> into) = 0;
  /// Writes the pieces one after the other; may take only a part of them.
  virtual IoResult write(std::string_view first, std::string_view second = {}) = 0;
  /// Tells the peer that nothing more will come; reading goes on.
  virtual void end_writing() = 0;
  /// Makes the coming close a reset, so that the peer cannot take what it got for the whole.
  virtual void make_close_a_reset() = 0;
  /// The descriptor to watch; owned by the stream.
  virtual int fd() const = 0;
};

/// Plain TCP. Takes the descriptor over and sets TCP_NODELAY.
std::unique_ptr<Stream> plain_stream(Fd fd);

/// A resolved TCP address.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  /// "127.0.0.1:8000", "[::1]:8000".
  std::string text() const;
  /// The same without the port.
  std::string host() const;
  std::uint16_t port() const;
};

/// Resolves a host name or literal. Names may block on the system's resolver: not for a loop's thread.
/// Errors: not_found.
Result<Address> resolve(const std::string& host, std::uint16_t port);
/// Reads "host:port", "[v6]:port", "http://host:port", "https://host:port" (port 80 or 443 when absent) and resolves it.
/// Errors: invalid, not_found.
Result<Address> resolve_url(std::string_view url);

/// A socket with its address, not yet listening: connections are still refused, or go to whoever else listens there. `share_port`
/// sets SO_REUSEPORT, so that several loops or processes accept on one port.
/// Port 0 takes a free one. Errors: io, with the address in `where`.
Result<Fd> bind_to(const Address& address, bool share_port);
/// Connections to the socket's address wait to be accepted from now on. Errors: io.
Status start_listening(const Fd& fd);
/// Both at once.
Result<Fd> listen_on(const Address& address, bool share_port);
/// Sends the connections that come to this shared port from now on to the socket that joined as number `index`, if there is one.
/// False: the kernel cannot.
bool steer_connections(const Fd& listener, std::uint32_t index);
Result<Address> local_address(const Fd& fd);

/// Starts to connect; the descriptor becomes writable when that is done. Errors: io.
Result<Fd> start_connect(const Address& address);
/// 0 when the connection that start_connect() began stands, else its errno.
int connect_error(int fd);

}  // namespace signalbox::net
