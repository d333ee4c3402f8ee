#include "actors/cluster_router/http/head.hpp"

namespace signalbox::http {

FaultText describe(Fault fault) {
  switch (fault) {
    case Fault::none: return {200, "none", "nothing is wrong"};
    case Fault::bad_start_line:
      return {400, "bad_start_line", "the first line is not 'METHOD TARGET HTTP/1.1'"};
    case Fault::bad_version: return {505, "bad_version", "only HTTP/1.0 and HTTP/1.1 are spoken here"};
    case Fault::bad_target: return {400, "bad_target", "the request target is not a path"};
    case Fault::target_too_long:
      return {414, "target_too_long", "the request's first line is over the limit"};
    case Fault::bad_field: return {400, "bad_field", "a header field has an invalid name or value"};
    case Fault::folded_field:
      return {400, "folded_field", "header fields folded over several lines are refused"};
    case Fault::bare_newline: return {400, "bare_newline", "lines end in CR LF; a bare LF is refused"};
    case Fault::head_too_large: return {431, "head_too_large", "the request's head is over the limit"};
    case Fault::too_many_fields:
      return {431, "too_many_fields", "the request has more header fields than the limit"};
    case Fault::bad_host: return {400, "bad_host", "exactly one Host field with a host's name is required"};
    case Fault::bad_length: return {400, "bad_length", "Content-Length must be one decimal number"};
    case Fault::conflicting_framing:
      return {400, "conflicting_framing",
              "Content-Length and Transfer-Encoding together are refused, as is the latter in HTTP/1.0"};
    case Fault::unknown_coding:
      return {501, "unknown_coding", "the only transfer coding understood is 'chunked'"};
    case Fault::unknown_expectation:
      return {417, "unknown_expectation", "the only expectation understood is '100-continue'"};
    case Fault::bad_chunk: return {400, "bad_chunk", "the chunked body is malformed"};
    case Fault::body_too_large: return {413, "body_too_large", "the request's body is over the limit"};
  }
  return {500, "unknown", "unknown"};
}

}  // namespace signalbox::http
