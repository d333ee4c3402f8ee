#include "actors/cluster_router/net/tls.hpp"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "actors/cluster_router/net/tls_stream.hpp"

namespace signalbox::net {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// Of TLS 1.2 only the suites with forward secrecy and authenticated encryption (RFC 7525, 4.2); 1.3 has no others.
constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr unsigned char http11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr std::size_t most_pem_bytes = 4u << 20;

Result<std::string> read_pem(const std::string& file) {
  const auto bad = [&file](std::string_view what) {
    return fail(ErrorKind::io, fmt::format("cannot read it: {}", what), file,
                "check the path and who may read it");
  };
  const std::unique_ptr<std::FILE, Freed<std::fclose>> in(std::fopen(file.c_str(), "rb"));
  if (!in) return bad(std::strerror(errno));
  std::string out;
  std::array<char, 16384> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), in.get())) {
    out.append(block.data(), got);
    if (out.size() > most_pem_bytes) return bad("it is longer than 4 MiB");
  }
  if (std::ferror(in.get())) return bad(std::strerror(errno));
  return out;
}

BioPtr memory_of(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string fingerprint(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  return to_hex({digest.data(), size});
}

CertificateFacts facts_of(X509* certificate) {
  CertificateFacts out;
  const BioPtr text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  if (size > 0) out.subject.assign(bytes, static_cast<std::size_t>(size));
  out.sha256 = fingerprint(certificate);
  const std::unique_ptr<ASN1_TIME, Freed<ASN1_TIME_free>> epoch(ASN1_TIME_set(nullptr, 0));
  int days = 0, seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, epoch.get(), X509_get0_notAfter(certificate)) == 1)
    out.not_after_s = std::int64_t{days} * 86'400 + seconds;
  out.outside_its_time = X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0 ||
                         X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0;
  return out;
}

/// What both sides have in common. Null: out of memory.
SSL_CTX* new_context(const SSL_METHOD* method) {
  SSL_CTX* context = SSL_CTX_new(method);
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, ciphers);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  // Resumption is by tickets alone: no table of sessions that grows and needs a lock.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  return context;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, http11, sizeof http11, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

/// Never asks on a terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

Status use_chain(SSL_CTX* context, const std::string& pem, const std::string& file) {
  const BioPtr in = memory_of(pem);
  const X509Ptr leaf(PEM_read_bio_X509_AUX(in.get(), nullptr, no_passphrase, nullptr));
  if (!leaf)
    return invalid("it holds no certificate in PEM form", file, "give the chain, the server's own first");
  if (SSL_CTX_use_certificate(context, leaf.get()) != 1)
    return invalid(
        fmt::format("its certificate cannot be used: {}", ERR_reason_error_string(ERR_peek_last_error())),
        file);
  while (X509* issuer = PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr))
    if (SSL_CTX_add0_chain_cert(context, issuer) != 1) {
      X509_free(issuer);
      return invalid("its chain cannot be used", file);
    }
  return {};
}

Status use_key(SSL_CTX* context, const std::string& pem, const std::string& file,
               const std::string& certificate_file) {
  const BioPtr in = memory_of(pem);
  const KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr));
  if (!key)
    return invalid("it holds no private key in PEM form that can be read without a passphrase", file,
                   "give the certificate's key, not encrypted");
  if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return invalid(fmt::format("the key does not belong to the certificate in {}", certificate_file), file,
                   "give the two that were made together");
  return {};
}

bool is_ip(const std::string& host) {
  in6_addr ignored;
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

std::string without_brackets(std::string_view host) {
  return std::string(host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host);
}

/// Judges a server's certificate; tells its stream what is wrong with it.
int recognise(X509_STORE_CTX* chain, void* argument) {
  const auto& wanted = *static_cast<const TlsIdentity*>(argument);
  SSL* session = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const std::string shown = fingerprint(X509_STORE_CTX_get0_cert(chain));
  if (!wanted.pins.empty()) {
    const bool known = std::ranges::find(wanted.pins, shown) != wanted.pins.end();
    X509_STORE_CTX_set_error(chain, known ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
    if (known) return 1;
    TlsStream::distrust(session, fmt::format("its certificate's SHA-256 is {}, and {} is pinned", shown,
                                             fmt::join(wanted.pins, " or ")));
    return 0;
  }
  if (X509_verify_cert(chain) == 1) return 1;
  TlsStream::distrust(session,
                      fmt::format("its certificate (SHA-256 {}) is not one for '{}': {}", shown, wanted.name,
                                  X509_verify_cert_error_string(X509_STORE_CTX_get_error(chain))));
  return 0;
}

}  // namespace

Result<std::shared_ptr<const TlsServer>> TlsServer::load(const std::string& certificate_file,
                                                         const std::string& key_file) {
  const auto chain = read_pem(certificate_file);
  if (!chain) return tl::unexpected(chain.error());
  const auto key = read_pem(key_file);
  if (!key) return tl::unexpected(key.error());
  std::shared_ptr<TlsServer> out(new TlsServer);
  out->context_ = new_context(TLS_server_method());
  if (out->context_ == nullptr) return fail(ErrorKind::internal, "no TLS context");
  SSL_CTX_set_options(out->context_, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_num_tickets(out->context_, 1);
  SSL_CTX_set_alpn_select_cb(out->context_, choose_protocol, nullptr);
  if (const auto used = use_chain(out->context_, *chain, certificate_file); !used)
    return tl::unexpected(used.error());
  if (const auto used = use_key(out->context_, *key, key_file, certificate_file); !used)
    return tl::unexpected(used.error());
  ERR_clear_error();
  out->certificate_ = facts_of(SSL_CTX_get0_certificate(out->context_));
  return out;
}

TlsServer::~TlsServer() { SSL_CTX_free(context_); }

std::unique_ptr<Stream> TlsServer::accept(Fd fd) const {
  return std::make_unique<TlsStream>(std::move(fd), SSL_new(context_), TlsStream::Side::server);
}

Result<TlsIdentity> TlsIdentity::parse(std::string_view text) {
  TlsIdentity out;
  const auto bad = [text](std::string_view hint) {
    return invalid(fmt::format("'{}' is no TLS identity", text.substr(0, 80)), {}, std::string(hint));
  };
  if (text.starts_with("name:") && text.size() > 5) return out.name = text.substr(5), out;
  if (!text.starts_with("sha256:")) return bad("write name:HOST or sha256:HEX[,HEX]");
  for (std::string_view rest = text.substr(7);;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto pin = Digest::from_hex(rest.substr(0, comma));
    if (!pin) return bad("a pin is the SHA-256 of a certificate: 64 hexadecimal digits");
    out.pins.push_back(pin->hex());
    if (comma == rest.size()) return out;
    rest.remove_prefix(comma + 1);
  }
}

Result<std::shared_ptr<const TlsAuthorities>> TlsAuthorities::load(const std::string& file) {
  std::shared_ptr<TlsAuthorities> out(new TlsAuthorities);
  out->store_ = X509_STORE_new();
  if (out->store_ == nullptr) return fail(ErrorKind::internal, "no certificate store");
  if (file.empty()) {
    X509_STORE_set_default_paths(out->store_);
    return out;
  }
  const auto pem = read_pem(file);
  if (!pem) return tl::unexpected(pem.error());
  out->digest_ = digest_of(*pem);
  const BioPtr in = memory_of(*pem);
  std::size_t count = 0;
  while (const X509Ptr authority{PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr)})
    count += X509_STORE_add_cert(out->store_, authority.get()) == 1 ? 1 : 0;
  ERR_clear_error();
  if (count == 0)
    return invalid("it holds no certificate in PEM form", file, "give the authority's certificate");
  return out;
}

TlsAuthorities::~TlsAuthorities() { X509_STORE_free(store_); }

Result<std::shared_ptr<const TlsClient>> TlsClient::make(TlsIdentity identity,
                                                         const TlsAuthorities* authorities,
                                                         std::string_view host) {
  const bool by_name = identity.pins.empty();
  if (by_name && authorities == nullptr) return invalid("a name, and no authority that could vouch for it");
  std::shared_ptr<TlsClient> out(new TlsClient);
  out->identity_ = std::move(identity);
  const std::string sent = by_name ? out->identity_.name : without_brackets(host);
  if (!is_ip(sent)) out->server_name_ = sent;
  out->digest_ =
      digest_of(fmt::format("{}\n{}\n{}\n{}", out->identity_.name, fmt::join(out->identity_.pins, ","), sent,
                            by_name ? authorities->digest_.hex() : ""));
  out->context_ = new_context(TLS_client_method());
  if (out->context_ == nullptr) return fail(ErrorKind::internal, "no TLS context");
  SSL_CTX_set_alpn_protos(out->context_, http11, sizeof http11);
  if (by_name) {
    X509_STORE_up_ref(authorities->store_);
    out->authorities_ = authorities->store_;
  }
  out->apply(out->context_);
  ERR_clear_error();
  return out;
}

void TlsClient::apply(SSL_CTX* context) const {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context, recognise, const_cast<TlsIdentity*>(&identity_));
  if (authorities_ == nullptr) return;
  SSL_CTX_set1_cert_store(context, authorities_);
  X509_VERIFY_PARAM* rules = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (is_ip(identity_.name))
    X509_VERIFY_PARAM_set1_ip_asc(rules, identity_.name.c_str());
  else
    X509_VERIFY_PARAM_set1_host(rules, identity_.name.c_str(), identity_.name.size());
}

std::string TlsClient::identity() const {
  return identity_.pins.empty() ? "name:" + identity_.name
                                : fmt::format("sha256:{}", fmt::join(identity_.pins, ","));
}

TlsClient::~TlsClient() {
  SSL_CTX_free(context_);
  X509_STORE_free(authorities_);
}

std::unique_ptr<Stream> TlsClient::connect(Fd fd) const {
  SSL* session = SSL_new(context_);
  if (session != nullptr && !server_name_.empty()) SSL_set_tlsext_host_name(session, server_name_.c_str());
  return std::make_unique<TlsStream>(std::move(fd), session, TlsStream::Side::client);
}

Result<std::shared_ptr<const TlsClient>> TlsTrust::client_for(std::string_view url, std::string_view identity,
                                                              const std::string& authorities_file) {
  constexpr std::string_view scheme = "https://";
  const bool secure = url.starts_with(scheme);
  if (!secure && !identity.empty())
    return invalid("it has a TLS identity, and its URL is not https", std::string(url));
  if (!secure) return nullptr;
  if (identity.empty()) return invalid("https, and no TLS identity to recognise it by", std::string(url));
  auto wanted = TlsIdentity::parse(identity);
  if (!wanted) return tl::unexpected(wanted.error());
  std::shared_ptr<const TlsAuthorities> authorities;
  if (wanted->pins.empty()) {
    auto [place, fresh] = loaded_.try_emplace(authorities_file);
    if (fresh) place->second = TlsAuthorities::load(authorities_file);
    if (!place->second) return tl::unexpected(place->second.error());
    authorities = *place->second;
  }
  const std::string_view authority = url.substr(scheme.size());
  const std::size_t bracket = authority.find(']');
  const std::size_t end = bracket == std::string_view::npos ? authority.find_first_of(":/") : bracket + 1;
  return TlsClient::make(*std::move(wanted), authorities.get(), authority.substr(0, end));
}

}  // namespace signalbox::net
