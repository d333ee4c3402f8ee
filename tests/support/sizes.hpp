// The sizes of tests, from tests/sizes.toml.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/source_dir.hpp"

namespace signalbox::tests {

/// The size of this section: `soak` if SIGNALBOX_TEST_SIZE says so, else `ci`. Reads only what that file needs of TOML:
/// sections and whole numbers.
inline std::uint64_t size_of_test(std::string_view section) {
  const char* wanted = std::getenv("SIGNALBOX_TEST_SIZE");
  const std::string key = wanted == nullptr ? "ci" : wanted;
  std::ifstream file(tests::source_path("tests/sizes.toml"));
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('[')) inside = line == "[" + std::string(section) + "]";
    if (!inside || !line.starts_with(key + " = ")) continue;
    std::uint64_t size = 0;
    const std::string_view digits = std::string_view(line).substr(key.size() + 3);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), size).ec == std::errc{}) return size;
  }
  throw std::runtime_error("tests/sizes.toml has no " + key + " in [" + std::string(section) + "]");
}

}  // namespace signalbox::tests
