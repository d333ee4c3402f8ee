// Heads of HTTP/1.1 messages (RFC 9110, RFC 9112), read strictly: whatever two parties could read differently
// is refused, because a router that passes it on lets one client's bytes become another client's request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace signalbox::http {

/// One field line; both views point into the bytes that were parsed. Names compare without case.
struct Field {
  std::string_view name;
  std::string_view value;
};
using Fields = std::vector<Field>;

/// Equality of ASCII text without case.
bool same_name(std::string_view a, std::string_view b);
/// The first field of this name.
std::optional<std::string_view> find(const Fields& fields, std::string_view name);
/// True when a comma-separated list holds this token (without case).
bool has_token(std::string_view list, std::string_view token);

/// How the length of a message's body is told.
enum class Framing : std::uint8_t { none, length, chunked, until_close };

/// Why a message was refused; describe() has the sentence and the status that a client gets.
enum class Fault : std::uint8_t {
  none,
  bad_start_line,
  bad_version,
  bad_target,
  target_too_long,
  bad_field,
  folded_field,
  bare_newline,
  head_too_large,
  too_many_fields,
  bad_host,
  bad_length,
  conflicting_framing,
  unknown_coding,
  unknown_expectation,
  bad_chunk,
  body_too_large,
};

struct FaultText {
  int status;
  std::string_view name;      ///< machine-readable, as in x-signalbox-reason
  std::string_view sentence;  ///< for the person who wrote the client
};
FaultText describe(Fault fault);

struct HeadLimits {
  std::size_t max_bytes = 32 * 1024;
  std::size_t max_fields = 100;
  std::size_t max_target = 16 * 1024;  ///< with the rest of a request's first line
};

struct RequestHead {
  std::string_view method;
  std::string_view target;  ///< origin form ("/path?query"), or "*"
  int minor_version = 1;    ///< HTTP/1.minor, 0 or 1
  Fields fields;
  Framing framing = Framing::none;
  std::uint64_t length = 0;  ///< of the body, with Framing::length
  bool keep_alive = true;
  bool expects_continue = false;

  /// The target without its query.
  std::string_view path() const { return target.substr(0, target.find('?')); }
};

/// After the bytes that a head was parsed from have moved from `from` to `to`, points its views there.
void rebase(RequestHead& head, const char* from, const char* to);

struct ResponseHead {
  int status = 0;
  int minor_version = 1;
  Fields fields;
  Framing framing = Framing::none;
  std::uint64_t length = 0;
  bool keep_alive = true;
};

/// The outcome of parsing: `consumed` > 0 when a whole head was read, a fault, or neither when more bytes are
/// needed.
struct Parsed {
  std::size_t consumed = 0;
  Fault fault = Fault::none;
};

/// Reads a request's head from the start of `bytes`. One empty line before it is skipped. `seen` bytes were
/// already offered in vain, so the search for the end starts there.
Parsed parse_request(std::string_view bytes, std::size_t seen, const HeadLimits& limits, RequestHead& out);

/// Reads a response's head. `to_head` says that it answers a HEAD request, which has no body.
Parsed parse_response(std::string_view bytes, std::size_t seen, const HeadLimits& limits, bool to_head,
                      ResponseHead& out);

/// True for fields that belong to one connection and are never passed on (RFC 9110, 7.6.1), besides those
/// that the message's own Connection field names.
bool is_hop_by_hop(std::string_view name);

}  // namespace signalbox::http
