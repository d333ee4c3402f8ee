#include "tests/support/files.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace signalbox::tests {

bool rewriting() {
  const char* const value = std::getenv("SIGNALBOX_REWRITE");
  return value != nullptr && std::string_view(value) == "1";
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  BOOST_TEST_REQUIRE(in.good(), "cannot read " << path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void check_golden(const std::filesystem::path& path, const std::string& actual) {
  if (rewriting()) return write_file(path, actual);
  BOOST_TEST(read_file(path) == actual, path << " differs; SIGNALBOX_REWRITE=1 rewrites it. Now:\n"
                                             << actual);
}

}  // namespace signalbox::tests
