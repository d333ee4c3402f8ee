#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "actors/kit/state_dir.hpp"
#include "tests/support/folder.hpp"

using namespace signalbox;
using signalbox::kit::StateDir;
using signalbox::tests::Folder;

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back_also_by_another_life) {
  const Folder folder;
  const auto dir = StateDir::open(folder / "deep/er");
  BOOST_REQUIRE(dir.has_value());
  BOOST_TEST(dir->read("x") == "");
  const std::string bytes("a\0b\n", 4);
  BOOST_REQUIRE(dir->write({"x", "old"}).has_value());
  BOOST_REQUIRE(dir->write({"x", bytes}).has_value());
  BOOST_TEST(StateDir::open(folder / "deep/er")->read("x") == bytes);
}

BOOST_AUTO_TEST_CASE(what_was_damaged_is_as_good_as_nothing) {
  const Folder folder;
  const auto dir = StateDir::open(folder / "");
  BOOST_REQUIRE(dir->write({"x", "a good long content"}).has_value());
  std::fstream(folder / "" + "/x", std::ios::in | std::ios::out).seekp(-3, std::ios::end) << "X";
  BOOST_TEST(dir->read("x") == "");
  std::ofstream(folder / "y") << "no header";
  BOOST_TEST(dir->read("y") == "");
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_written_is_an_error_with_its_path) {
  const auto dir = StateDir::open("/proc/nowhere");
  BOOST_REQUIRE(!dir.has_value());
  BOOST_TEST(dir.error().where == "/proc/nowhere");
}
