// Files of the source tree, for tests: examples, and golden texts that SIGNALBOX_REWRITE=1 rewrites.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/support/source_dir.hpp"

namespace signalbox::test {

inline std::filesystem::path source_path(std::string_view relative) { return tests::source_path(relative); }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  BOOST_TEST_REQUIRE(in.good(), "cannot read " << path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Compares with the golden file, or rewrites it.
inline void check_golden(const std::filesystem::path& path, const std::string& actual) {
  const char* const rewrite = std::getenv("SIGNALBOX_REWRITE");
  if (rewrite && std::string_view(rewrite) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  BOOST_TEST(read_file(path) == actual, path << " differs; SIGNALBOX_REWRITE=1 rewrites it. Now:\n"
                                             << actual);
}

}  // namespace signalbox::test
