// Files under tests/ that hold what is expected, rewritten with SIGNALBOX_REWRITE=1.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/support/source_dir.hpp"

namespace signalbox::tests {

inline bool rewriting() {
  const char* value = std::getenv("SIGNALBOX_REWRITE");
  return value != nullptr && std::string_view(value) == "1";
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// `path` is relative to the source folder.
inline void matches_golden(std::string_view path, std::string_view text) {
  const std::filesystem::path file = tests::source_path(path);
  if (rewriting()) write_file(file, text);
  BOOST_TEST(read_file(file) == text, path << " differs; if that is meant, run with SIGNALBOX_REWRITE=1");
}

}  // namespace signalbox::tests
