// Errors are values. An error says what is wrong, where, and what to do.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace signalbox {

enum class ErrorKind : std::uint8_t {
  invalid,      ///< malformed or out of its declared range
  not_found,    ///< a name that nobody declares
  too_large,    ///< over a declared limit
  conflict,     ///< contradicts what is already in force
  denied,       ///< not authorised
  unavailable,  ///< cannot be reached or is not ready
  io,           ///< the operating system refused
  internal,     ///< a defect of ours
};

constexpr std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid: return "invalid";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::too_large: return "too_large";
    case ErrorKind::conflict: return "conflict";
    case ErrorKind::denied: return "denied";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::io: return "io";
    case ErrorKind::internal: return "internal";
  }
  return "internal";
}

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string what;   ///< what is wrong, in one clause
  std::string where;  ///< a file:line:column, a field, a topic; may be empty
  std::string hint;   ///< what to do about it; may be empty

  /// "where: what; hint".
  std::string text() const {
    std::string out = where.empty() ? what : where + ": " + what;
    if (!hint.empty()) out += "; " + hint;
    return out;
  }
  /// The same error seen from one level further out: `outer` is put before `where`.
  Error within(std::string_view outer) && {
    where = where.empty() ? std::string(outer) : fmt::format("{}.{}", outer, where);
    return std::move(*this);
  }
  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string what, std::string where = {},
                                  std::string hint = {}) {
  return tl::unexpected<Error>(Error{kind, std::move(what), std::move(where), std::move(hint)});
}
inline tl::unexpected<Error> invalid(std::string what, std::string where = {}, std::string hint = {}) {
  return fail(ErrorKind::invalid, std::move(what), std::move(where), std::move(hint));
}

}  // namespace signalbox
