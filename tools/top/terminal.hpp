// The terminal of `top`: ncurses, with nothing but lines and keys let through.
#pragma once

#include <optional>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"
#include "tools/top/screen/screen.hpp"

namespace signalbox::top {

class Terminal {
 public:
  /// Takes the terminal over. Errors: unavailable if stdin or stdout is none, or its type is not known.
  static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept : active_(std::exchange(other.active_, false)) {}
  Terminal& operator=(Terminal&&) = delete;
  /// Gives it back.
  ~Terminal();

  Size size() const;
  void show(const Screen& screen);
  /// The next key, or nothing within this time. A change of size is a key of its own.
  std::optional<int> key(Duration longest);

 private:
  Terminal() = default;
  bool active_ = true;
};

}  // namespace signalbox::top
