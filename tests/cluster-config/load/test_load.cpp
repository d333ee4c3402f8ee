#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>

#include "cluster-config/load/load.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::config;

BOOST_AUTO_TEST_CASE(every_example_loads_with_its_policy) {
  std::size_t seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_path("cluster-config/examples"))) {
    if (entry.path().extension() != ".toml") continue;
    ++seen;
    const auto loaded = load(entry.path().string());
    BOOST_TEST(loaded.has_value(), (loaded ? "" : loaded.error().report));
  }
  BOOST_TEST(seen > 0);
}
