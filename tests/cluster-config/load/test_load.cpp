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
       std::filesystem::directory_iterator(tests::source_path("cluster-config/examples"))) {
    if (entry.path().extension() != ".toml") continue;
    ++seen;
    const auto loaded = load(entry.path().string());
    BOOST_TEST(loaded.has_value(), (loaded ? "" : loaded.error().report));
  }
  BOOST_TEST(seen > 0);
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_is_named) {
  const auto missing = load("/nowhere/fleet.toml");
  BOOST_REQUIRE(!missing.has_value());
  BOOST_TEST(missing.error().report ==
             "/nowhere/fleet.toml: cannot read it: No such file or directory; check the path\n");
}

BOOST_AUTO_TEST_CASE(configuration_and_policy_must_fit) {
  const auto config = load_config(tests::source_path("cluster-config/examples/laptop.toml").string());
  BOOST_REQUIRE(config.has_value());
  constexpr std::string_view text = R"(policy other version 1
topology { zone us { region us-east } zone eu { region eu-west } }
models { m-large  m-huge }
class a { tenants *  model m-large  criticality standard  residency zone us }
class b { tenants *  model m-huge  criticality standard  residency any }
otherwise reject 403
)";
  const auto compiled = policy::compile_text(text, "other.policy");
  BOOST_REQUIRE(compiled.has_value());
  const std::string report = render(match(*config, *compiled), "laptop.toml");
  tests::check_golden(tests::source_path("tests/cluster-config/load/mismatch.txt"), report);
}

// Virginia's two engines with m-large and two with m-small share a rack here; a third m-small stands in Dublin.
BOOST_AUTO_TEST_CASE(limits_that_the_whole_fleet_cannot_keep_are_mistakes) {
  auto config = load_config(tests::source_path("cluster-config/examples/two-regions.toml").string());
  BOOST_REQUIRE(config.has_value());
  for (Engine& engine : config->engines)
    if (engine.cluster.str() == "virginia") engine.rack = DomainName("virginia-r1");
  const auto report = [&](const std::string& limits) {
    const auto compiled = policy::compile_text(
        "policy p version 1\nmodels { m-small  m-large }\n"
        "topology { zone EU { region eu-west, eu-north } zone US { region us-east } }\n"
        "class a { tenants a  model m-large  criticality critical  residency zone US  demand 0..1200 tok/s "
        "}\n"
        "class b { tenants *  model m-small  criticality standard  residency any }\n"
        "class c { tenants *  model m-large  criticality sheddable  residency any  demand 0..2900 tok/s }\n"
        "otherwise reject 403\nlimits {\n" +
            limits + "\n}\n",
        "p.policy");
    BOOST_REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().text()));
    return render(match_limits(*config, *compiled), "two-regions.toml");
  };
  tests::check_golden(
      tests::source_path("tests/cluster-config/load/limits.txt"),
      report("spread a >= 2 engines\nspread b >= 4 engines, 2 racks") +
          report("spread b >= 3 racks, 3 engines") + report("weight(engine) <= 0.3\nweight(rack) <= 0.4") +
          report("survive 1 region for criticality >= standard\nsurvive 1 rack for criticality >= critical") +
          report("weight(zone) <= 0.7") + report("survive 1 zone for criticality >= critical"));
  // Each of the five engines with m-large carries 822 tok/s, 48 of 0.02 s + 48 * 0.8 ms. Of c's 2900 tok/s those three of zone EU
  // take 2466, which leaves 1210 of zone US to a.
  BOOST_TEST(report("capacity(a) >= 1 * demand\ncapacity(a, zone US) >= 1 * demand").empty());
  BOOST_TEST(report("capacity(c) >= 1 * demand\ncapacity(c, region eu-west) >= 0.5 * demand").empty());
  tests::check_golden(tests::source_path("tests/cluster-config/load/capacity.txt"),
                      report("capacity(a, zone US) >= 1.3 * demand") +
                          report("capacity(a, zone EU) >= 0.5 * demand") +
                          report("capacity(c, cluster stockholm) >= 0.5 * demand"));
  BOOST_TEST(report("spread a >= 2 engines\nspread b >= 3 engines, 2 racks").empty());
}
