#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "actors/kit/state_dir.hpp"

using namespace signalbox;
using signalbox::kit::StateDir;

namespace {
struct Folder {
  std::string path = std::filesystem::temp_directory_path() / ("sbx-state-" + std::to_string(::getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};
}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back_also_by_another_life) {
  const Folder folder;
  const auto dir = StateDir::open(folder.path + "/deep/er");
  BOOST_REQUIRE(dir.has_value());
  BOOST_TEST(dir->read("x") == "");
  const std::string bytes("a\0b\n", 4);
  BOOST_REQUIRE(dir->write({"x", "old"}).has_value());
  BOOST_REQUIRE(dir->write({"x", bytes}).has_value());
  BOOST_TEST(StateDir::open(folder.path + "/deep/er")->read("x") == bytes);
}

BOOST_AUTO_TEST_CASE(what_was_damaged_is_as_good_as_nothing) {
  const Folder folder;
  const auto dir = StateDir::open(folder.path);
  BOOST_REQUIRE(dir->write({"x", "a good long content"}).has_value());
  std::fstream(folder.path + "/x", std::ios::in | std::ios::out).seekp(-3, std::ios::end) << "X";
  BOOST_TEST(dir->read("x") == "");
  std::ofstream(folder.path + "/y") << "no header";
  BOOST_TEST(dir->read("y") == "");
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_written_is_an_error_with_its_path) {
  const auto dir = StateDir::open("/proc/nowhere");
  BOOST_REQUIRE(!dir.has_value());
  BOOST_TEST(dir.error().where == "/proc/nowhere");
}
