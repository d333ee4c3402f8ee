// A TLS session over a non-blocking socket. Its BIO is ours: it sends without SIGPIPE, and it remembers that the socket was
// emptied, which spares a system call for each read.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "actors/cluster_router/net/stream.hpp"

namespace signalbox::net {

class TlsStream final : public Stream {
 public:
  enum class Side : std::uint8_t { server, client };

  /// Takes over `fd`; a null `session` fails in open().
  TlsStream(Fd fd, SSL* session, Side side);
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Opened open() override;
  std::string problem() const override { return problem_; }
  IoResult read(std::span<char> into) override;
  IoResult write(std::string_view first, std::string_view second) override;
  void end_writing() override;
  void make_close_a_reset() override;
  int fd() const override { return fd_.get(); }

  /// What a certificate check found, while the handshake runs.
  static void distrust(SSL* session, std::string why);

 private:
  friend struct SocketBio;
  Opened first_byte();
  Opened handshake_failed(int code);
  Io state_after(int code);
  IoResult clear_write(std::string_view bytes);

  Fd fd_;
  SSL* session_;
  Side side_;
  bool open_ = false;
  bool saw_first_byte_ = false;
  bool in_the_clear_ = false;
  bool dry_ = false;     ///< the last receive left nothing in the socket
  bool silent_ = false;  ///< say no goodbye
  std::string problem_;
  std::string distrusted_;
};

}  // namespace signalbox::net
