// What went wrong, as text for a test's message.
#pragma once

#include <string>

#include "messages/base/result.hpp"

namespace signalbox::tests {

template <class T>
std::string error_of(const Result<T>& result) {
  return result ? std::string() : result.error().text();
}

}  // namespace signalbox::tests
