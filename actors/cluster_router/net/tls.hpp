// TLS for both sides of a proxy: what a listener shows, and what a server must show. OpenSSL stays behind this header.
//
// TLS 1.2 with forward secrecy or 1.3, HTTP/1.1 by ALPN, no renegotiation, no early data. Contexts are immutable and shared
// between threads; a reload makes new ones, and connections that stand keep theirs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/net/stream.hpp"
#include "messages/base/digest.hpp"

struct ssl_ctx_st;
struct x509_store_st;

namespace signalbox::net {

/// A certificate as operators compare it.
struct CertificateFacts {
  std::string subject;
  std::string sha256;             ///< of its DER form, lower-case hexadecimal
  std::int64_t not_after_s = 0;   ///< Unix time
  bool outside_its_time = false;  ///< expired, or not valid yet
};

/// What a listener needs: a certificate chain and its key.
class TlsServer {
 public:
  /// Reads PEM files. Errors: io, invalid; each names the file and what to do.
  static Result<std::shared_ptr<const TlsServer>> load(const std::string& certificate_file,
                                                       const std::string& key_file);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  /// A stream whose open() awaits a client's handshake.
  std::unique_ptr<Stream> accept(Fd fd) const;
  const CertificateFacts& certificate() const { return certificate_; }

 private:
  TlsServer() = default;
  ssl_ctx_st* context_ = nullptr;
  CertificateFacts certificate_;
};

/// What a server's certificate must be: valid for a name under an authority, or one of these very certificates.
struct TlsIdentity {
  std::string name;               ///< a DNS name or an IP address
  std::vector<std::string> pins;  ///< SHA-256 of certificates; if there are any, nothing else counts

  /// Reads "name:HOST" or "sha256:HEX[,HEX]", as fleet tables write it. Errors: invalid.
  static Result<TlsIdentity> parse(std::string_view text);
};

/// Who may vouch for a server's name; shared by all clients that believe the same ones.
class TlsAuthorities {
 public:
  /// Reads a PEM file; an empty name stands for the system's authorities. Errors: io, invalid.
  static Result<std::shared_ptr<const TlsAuthorities>> load(const std::string& file);
  ~TlsAuthorities();
  TlsAuthorities(const TlsAuthorities&) = delete;
  TlsAuthorities& operator=(const TlsAuthorities&) = delete;

 private:
  friend class TlsClient;
  TlsAuthorities() = default;
  x509_store_st* store_ = nullptr;
  Digest digest_;
};

/// What a client needs: how it recognises one server.
class TlsClient {
 public:
  /// `host`: of the URL, told to a server that is recognised by a pin (SNI). `authorities` may be null if there are pins.
  /// Errors: invalid.
  static Result<std::shared_ptr<const TlsClient>> make(TlsIdentity identity,
                                                       const TlsAuthorities* authorities,
                                                       std::string_view host);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// A stream whose open() shakes hands and recognises the server. Nothing is sent to any other.
  std::unique_ptr<Stream> connect(Fd fd) const;
  /// Makes another library's client context recognise the same server. This object must outlive its handshakes.
  void apply(ssl_ctx_st* context) const;
  /// Told to the server (SNI); empty for an address.
  const std::string& server_name() const { return server_name_; }
  /// As TlsIdentity::parse() reads it.
  std::string identity() const;
  /// Of all that decides who is trusted: equal ones may share connections.
  const Digest& digest() const { return digest_; }

 private:
  TlsClient() = default;
  ssl_ctx_st* context_ = nullptr;
  x509_store_st* authorities_ = nullptr;  ///< null: pins
  TlsIdentity identity_;
  std::string server_name_;
  Digest digest_;
};

/// Makes the clients of a fleet's servers; reads each file of authorities once.
class TlsTrust {
 public:
  /// Null for http. Who a server is says its `identity` alone: https without one, and one without https, are errors.
  /// Errors: io, invalid.
  Result<std::shared_ptr<const TlsClient>> client_for(std::string_view url, std::string_view identity,
                                                      const std::string& authorities_file);

 private:
  std::map<std::string, Result<std::shared_ptr<const TlsAuthorities>>> loaded_;
};

}  // namespace signalbox::net
