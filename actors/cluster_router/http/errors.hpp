// Errors in the shape that OpenAI's clients read: {"error":{"message","type","param","code"}}.
#pragma once

#include <string>
#include <string_view>

#include "messages/base/json_text.hpp"

namespace signalbox::http {

/// The reason phrase of a status ("Not Found"); "Unknown" for one without a name.
std::string_view reason_phrase(int status);

/// The `type` that OpenAI gives to errors of this status.
std::string_view error_type(int status);

using signalbox::json_string;

/// The JSON of one error. `code` is machine-readable (empty: null), `param` names the faulty part of the
/// request (empty: null).
std::string openai_error(int status, std::string_view code, std::string_view message,
                         std::string_view param = {});

/// The same as an event of a stream that can no longer be completed: "data: {...}\n\n".
std::string openai_error_event(int status, std::string_view code, std::string_view message);

/// An engine's own error body brought into that shape: numeric codes become null, a missing `param` is added,
/// the other dialects ({"detail"}, a bare {"message"}, plain text, HTML) are translated. Never fails.
std::string normalise_error(int status, std::string_view body);

}  // namespace signalbox::http
