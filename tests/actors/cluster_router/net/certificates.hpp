// Certificates made when a test runs: an authority, what it signs, and files of them.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>

#include "messages/base/digest.hpp"
#include "tests/support/folder.hpp"

namespace signalbox::net {

/// A certificate with its key.
class Certificate {
 public:
  struct Options {
    std::string names = "DNS:localhost";  ///< its subjectAltName
    long from_s = -3600, until_s = 3600;  ///< from now
    bool authority = false;
  };
  /// Signed by `issuer`, or by itself.
  explicit Certificate(Options options, const Certificate* issuer = nullptr) {
    X509* x = certificate_.get();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial());
    X509_gmtime_adj(X509_getm_notBefore(x), options.from_s);
    X509_gmtime_adj(X509_getm_notAfter(x), options.until_s);
    X509_set_pubkey(x, key_.get());
    const std::string name = "test " + std::to_string(serial());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.data()),
                               static_cast<int>(name.size()), -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer->certificate_.get() : x));
    extend(NID_basic_constraints, options.authority ? "critical,CA:TRUE" : "CA:FALSE");
    extend(NID_subject_alt_name, options.names);
    BOOST_REQUIRE(X509_sign(x, (issuer ? issuer : this)->key_.get(), EVP_sha256()) > 0);
  }

  std::string pem() const {
    return written([&](BIO* to) { PEM_write_bio_X509(to, certificate_.get()); });
  }
  std::string key_pem() const {
    return written(
        [&](BIO* to) { PEM_write_bio_PrivateKey(to, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }
  /// The same under a passphrase.
  std::string locked_key_pem() const {
    const std::string word = "secret";
    return written([&](BIO* to) {
      PEM_write_bio_PrivateKey(to, key_.get(), EVP_aes_128_cbc(),
                               reinterpret_cast<const unsigned char*>(word.data()),
                               static_cast<int>(word.size()), nullptr, nullptr);
    });
  }
  std::string sha256() const {
    std::array<unsigned char, 32> digest;
    unsigned int size = 0;
    X509_digest(certificate_.get(), EVP_sha256(), digest.data(), &size);
    return to_hex(digest);
  }

 private:
  struct Free {
    void operator()(X509* x) const { X509_free(x); }
    void operator()(EVP_PKEY* k) const { EVP_PKEY_free(k); }
    void operator()(BIO* b) const { BIO_free(b); }
  };
  static long& serial() {
    static long last = 0;
    return last;
  }
  void extend(int nid, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    BOOST_REQUIRE(extension != nullptr);
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  template <class Write>
  static std::string written(Write write) {
    const std::unique_ptr<BIO, Free> to(BIO_new(BIO_s_mem()));
    write(to.get());
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(to.get(), &bytes);
    return {bytes, static_cast<std::size_t>(size)};
  }

  std::unique_ptr<EVP_PKEY, Free> key_{EVP_EC_gen("P-256")};
  std::unique_ptr<X509, Free> certificate_{X509_new()};
};

}  // namespace signalbox::net
