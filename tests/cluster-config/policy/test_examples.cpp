#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "cluster-config/policy/compile.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::policy;

BOOST_AUTO_TEST_CASE(every_example_compiles_and_is_in_the_one_layout) {
  const auto folder = tests::source_path("cluster-config/examples");
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".policy") continue;
    ++seen;
    const std::string text = tests::read_file(entry.path());
    const Compilation compiled = compile(text);
    BOOST_TEST(compiled.policy.has_value(), render(compiled.errors, text, entry.path().filename().string()));
    const auto formatted = format(text);
    BOOST_REQUIRE(formatted.has_value());
    BOOST_TEST(*formatted == text, entry.path().filename().string() << " is not formatted");
  }
  BOOST_TEST(seen > 0);
}
