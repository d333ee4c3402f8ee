// Messages as one line of text and back, for scenarios and transcripts: `name field=value field=value`, fields that keep
// their default left out. Structs are {field=value ...}, lists [value value], digests #word (the digest of that word) or
// hexadecimal, durations seconds.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "messages/schema/catalog.hpp"

namespace signalbox::tests {

/// A cursor over one line; every error throws, since a scenario is part of the test.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool done() { return skip(), rest_.empty(); }
  bool take(char c) {
    skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Up to a space, '=' or closing bracket; or a quoted text.
  std::string word() {
    skip();
    if (!rest_.empty() && rest_.front() == '"') {
      const auto end = rest_.find('"', 1);
      if (end == std::string_view::npos) fail("unclosed quote");
      std::string out(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
      for (auto at = out.find("\\n"); at != std::string::npos; at = out.find("\\n")) out.replace(at, 2, "\n");
      return out;
    }
    std::string out(rest_.substr(0, rest_.find_first_of(" =]}")));
    rest_.remove_prefix(out.size());
    return out;
  }
  std::string rest() {
    skip();
    return std::string(rest_);
  }
  [[noreturn]] void fail(std::string what) const {
    throw std::runtime_error(fmt::format("{} before '{}'", what, rest_.substr(0, 60)));
  }

 private:
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

/// The number at the start of `text`, read to where it ends; throws if there is none.
template <class N>
N number(std::string_view text, int base = 10) {
  N out{};
  std::errc error;
  if constexpr (std::is_floating_point_v<N>)
    error = std::from_chars(text.data(), text.data() + text.size(), out).ec;
  else
    error = std::from_chars(text.data(), text.data() + text.size(), out, base).ec;
  if (error != std::errc{}) throw std::runtime_error(fmt::format("'{}' is no number", text));
  return out;
}

/// One value of these types, as scenarios write it.
void read_value(Reader& in, ProcessName& value);
void read_value(Reader& in, Duration& value);
void read_value(Reader& in, Incarnation& value);
/// The message `name` with the fields that follow.
schema::Message read_message(Reader& in, const std::string& name);

/// Text in quotes where it needs them; its length if it is long.
std::string show_value(const std::string& value);
/// "name field=value ...".
std::string show(const schema::Message& message);

}  // namespace signalbox::tests
