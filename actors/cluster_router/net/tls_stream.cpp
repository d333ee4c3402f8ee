#include "actors/cluster_router/net/tls_stream.hpp"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace signalbox::net {

/// The transport that OpenSSL sees.
struct SocketBio {
  static TlsStream& stream(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, int size) {
    TlsStream& self = stream(bio);
    BIO_clear_retry_flags(bio);
    if (self.dry_) return BIO_set_retry_read(bio), -1;
    const ssize_t got = ::recv(self.fd_.get(), into, static_cast<std::size_t>(size), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    if (got < size) self.dry_ = got > 0;
    return static_cast<int>(got);
  }
  static int write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t put = ::send(stream(bio).fd_.get(), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return static_cast<int>(put);
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO* make(TlsStream& stream) {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "signalbox socket");
      BIO_meth_set_read(made, read);
      BIO_meth_set_write(made, write);
      BIO_meth_set_ctrl(made, control);
      return made;
    }();
    BIO* bio = BIO_new(method);
    BIO_set_data(bio, &stream);
    BIO_set_init(bio, 1);
    return bio;
  }
};

namespace {

constexpr std::size_t record_bytes = 16 * 1024;  // RFC 8446, 5.1
constexpr char handshake_record = 0x16;

std::string latest_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "the connection was closed" : reason;
}

/// Where a session of ours, and of nobody else, refers to its stream.
int own_data() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

void TlsStream::distrust(SSL* session, std::string why) {
  if (auto* stream = static_cast<TlsStream*>(SSL_get_ex_data(session, own_data())))
    stream->distrusted_ = std::move(why);
}

Io TlsStream::state_after(int code) {
  switch (SSL_get_error(session_, code)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return Io::would_block;
    case SSL_ERROR_ZERO_RETURN: return Io::ended;
    default: silent_ = true; return Io::failed;  // a broken session must not be shut down in order
  }
}

TlsStream::TlsStream(Fd fd, SSL* session, Side side) : fd_(std::move(fd)), session_(session), side_(side) {
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (session_ == nullptr) return;
  BIO* bio = SocketBio::make(*this);
  SSL_set_bio(session_, bio, bio);
  SSL_set_ex_data(session_, own_data(), this);
  side_ == Side::server ? SSL_set_accept_state(session_) : SSL_set_connect_state(session_);
}

TlsStream::~TlsStream() {
  if (open_ && !silent_) end_writing();
  SSL_free(session_);
  ERR_clear_error();
}

/// A client that speaks plain HTTP to this port deserves an answer that it can read.
Opened TlsStream::first_byte() {
  char first = 0;
  const ssize_t got = ::recv(fd_.get(), &first, 1, MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Opened::would_block;
  saw_first_byte_ = true;
  if (got != 1 || first == handshake_record) return Opened::ready;
  in_the_clear_ = true;
  problem_ = "the client does not speak TLS";
  return Opened::in_the_clear;
}

Opened TlsStream::open() {
  if (open_) return Opened::ready;
  if (session_ == nullptr) return problem_ = "out of memory", Opened::failed;
  if (side_ == Side::server && !saw_first_byte_)
    if (const Opened looked = first_byte(); looked != Opened::ready) return looked;
  dry_ = false;
  ERR_clear_error();
  const int code = SSL_do_handshake(session_);
  if (code != 1) return handshake_failed(code);
  open_ = true;
  return Opened::ready;
}

Opened TlsStream::handshake_failed(int code) {
  if (state_after(code) == Io::would_block) return Opened::would_block;
  problem_ = distrusted_.empty() ? "TLS handshake: " + latest_error() : distrusted_;
  return distrusted_.empty() ? Opened::failed : Opened::untrusted;
}

IoResult TlsStream::read(std::span<char> into) {
  if (in_the_clear_) {
    const ssize_t got = ::recv(fd_.get(), into.data(), into.size(), 0);
    if (got == 0) return {Io::ended};
    if (got < 0) return {errno == EAGAIN || errno == EINTR ? Io::would_block : Io::failed};
    return {Io::done, static_cast<std::size_t>(got), static_cast<std::size_t>(got) == into.size()};
  }
  std::size_t filled = 0;
  dry_ = false;
  while (filled < into.size()) {
    std::size_t got = 0;
    ERR_clear_error();
    const int code = SSL_read_ex(session_, into.data() + filled, into.size() - filled, &got);
    filled += got;
    if (code == 1) continue;
    const Io state = state_after(code);
    if (filled > 0) return {Io::done, filled, state != Io::would_block};
    return {state};
  }
  return {Io::done, filled, true};
}

IoResult TlsStream::clear_write(std::string_view bytes) {
  const ssize_t put = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (put < 0) return {errno == EAGAIN || errno == EINTR ? Io::would_block : Io::failed};
  return {Io::done, static_cast<std::size_t>(put)};
}

IoResult TlsStream::write(std::string_view first, std::string_view second) {
  if (in_the_clear_) return clear_write(first);
  // A record that the kernel took only a part of is finished by the next call, which must bring the same bytes again: callers
  // do, since they keep what was not taken. So two pieces go into one record by copying, each time the same way.
  std::array<char, record_bytes> joined;
  std::string_view bytes = first;
  if (!second.empty() && first.size() < joined.size()) {
    const std::size_t rest = std::min(second.size(), joined.size() - first.size());
    std::memcpy(joined.data(), first.data(), first.size());
    std::memcpy(joined.data() + first.size(), second.data(), rest);
    bytes = {joined.data(), first.size() + rest};
  }
  std::size_t put = 0;
  ERR_clear_error();
  const int code = SSL_write_ex(session_, bytes.data(), bytes.size(), &put);
  if (code == 1) return {Io::done, put};
  const Io state = state_after(code);
  return {state == Io::ended ? Io::failed : state};
}

void TlsStream::end_writing() {
  if (open_ && !silent_) {
    ERR_clear_error();
    SSL_shutdown(
        session_);  // its alert, close_notify, is sent if the kernel takes it; the end of TCP follows anyway
    silent_ = true;
  }
  ::shutdown(fd_.get(), SHUT_WR);
}

void TlsStream::make_close_a_reset() {
  silent_ = true;
  const linger abort{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
}

}  // namespace signalbox::net
