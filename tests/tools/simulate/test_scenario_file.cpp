#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/support/files.hpp"
#include "tests/support/folder.hpp"
#include "tools/simulate/scenario_file.hpp"

using namespace signalbox;
using namespace signalbox::simulate;
using signalbox::tests::Folder;

namespace {

const std::string top =
    "topology = \"" + tests::source_path("cluster-config/examples/laptop.toml").string() + "\"\n";
const std::string load =
    "[[load]]\nname = \"a\"\ncluster = \"east\"\nmodel = \"m-large\"\nrate = 1\nprompt_tokens = 10\n";

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_scenarios_of_the_tree_are_read, Folder) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tests::source_path("tests/scenarios"))) {
    if (entry.path().extension() != ".toml") continue;
    const auto scenario = read_scenario(entry.path().string());
    BOOST_TEST(scenario.has_value(), entry.path() << (scenario ? "" : ": " + scenario.error().text()));
    ++seen;
  }
  BOOST_TEST(seen >= 3u);
}

BOOST_FIXTURE_TEST_CASE(everything_is_read, Folder) {
  write("trace.jsonl",
        "{\"timestamp\": 2000, \"input_length\": 600, \"output_length\": 7, \"hash_ids\": [3, 9]}\n"
        "{\"timestamp\": 1000, \"input_length\": 5, \"output_length\": 0, \"hash_ids\": [4]}\n");
  const auto scenario =
      read_scenario(write("x.toml", "seed = 9\nduration = \"2min\"\nwarmup = \"5s\"\n" + top +
                                        "[control]\ngain = 2.5\ndelay = 3\n"
                                        "[[load]]\nname = \"t\"\ncluster = \"west\"\nmodel = "
                                        "\"m-small\"\nasked = \"sheddable\"\n"
                                        "trace = \"trace.jsonl\"\ntrace_speed = 2\n" +
                                        load +
                                        "[[event]]\nat = \"9s\"\nkind = \"demand\"\nvalue = 2\n"
                                        "[[event]]\nat = \"3s\"\nkind = \"network\"\nfrom = "
                                        "\"east\"\nto = \"west\"\nvalue = 0.2\n"));
  BOOST_REQUIRE_MESSAGE(scenario.has_value(), (scenario ? "" : scenario.error().text()));
  BOOST_TEST(scenario->name == "x");
  BOOST_TEST(scenario->seed == 9u);
  BOOST_TEST((scenario->duration == 2min && scenario->warmup == 5s));
  BOOST_TEST((scenario->config.control.feedback_gain == 2.5 && scenario->config.control.feedback_delay == 3));
  BOOST_REQUIRE_EQUAL(scenario->loads.size(), 2u);
  const auto& trace = scenario->loads[0].trace;
  BOOST_REQUIRE_EQUAL(trace.size(), 2u);
  BOOST_TEST((trace[0].at == 500ms && trace[1].at == 1s));
  BOOST_TEST((trace[0].output_tokens == 1 && trace[1].output_tokens == 7));
  BOOST_TEST((trace[1].prompt[0].tokens == 512 && trace[1].prompt[1].tokens == 88));
  BOOST_TEST((scenario->loads[0].asked == Criticality::sheddable));
  BOOST_TEST((scenario->happenings[0].at == 3s && scenario->happenings[1].at == 9s));
}

BOOST_FIXTURE_TEST_CASE(mistakes_name_their_place, Folder) {
  const struct {
    const char* name;
    std::string text;
    const char* where;
    const char* what;
  } rows[] = {
      {"not TOML", "seed = \n", ":1:", ""},
      {"no topology", load, ":1:1", "'topology' is missing"},
      {"a topology that is not there", "topology = \"none.toml\"\n" + load, "", "none.toml"},
      {"a misspelt key", "duraton = \"1s\"\n" + top + load, ":1:1", "did you mean 'duration'"},
      {"a wrong type", "seed = \"x\"\n" + top + load, ":1:8", "'seed' is not a whole number"},
      {"no unit", "duration = 5\n" + top + load, ":1:12", "not a duration"},
      {"no load", top, "", "there is no [[load]]"},
      {"an unknown cluster", top + "[[load]]\nname = \"a\"\ncluster = \"north\"\nmodel = \"m\"\nrate = 1\n",
       ":2:1", "no cluster 'north'"},
      {"a load of nothing", top + "[[load]]\nname = \"a\"\ncluster = \"east\"\nmodel = \"m\"\n", ":2:1",
       "a rate"},
      {"a trace that is not there",
       top + "[[load]]\nname = \"a\"\ncluster = \"east\"\nmodel = \"m\"\ntrace = \"no.jsonl\"\n", "no.jsonl",
       "cannot read"},
      {"an unknown event", top + load + "[[event]]\nat = \"1s\"\nkind = \"storm\"\nvalue = 1\n", ":8:1",
       "no kind"},
      {"an unknown engine",
       top + load + "[[event]]\nat = \"1s\"\nkind = \"slow\"\nengine = \"zz\"\nvalue = 2\n", ":8:1",
       "no engine 'zz'"},
      {"an engine that takes no time",
       top + load + "[[event]]\nat = \"1s\"\nkind = \"slow\"\nengine = \"e1\"\nvalue = 0\n", ":8:1",
       "positive"},
  };
  for (const auto& row : rows) {
    const auto scenario = read_scenario(write("bad.toml", row.text));
    BOOST_REQUIRE_MESSAGE(!scenario.has_value(), row.name);
    const std::string text = scenario.error().text();
    BOOST_TEST(scenario.error().where.find(row.where) != std::string::npos, row.name << ": " << text);
    BOOST_TEST(text.find(row.what) != std::string::npos, row.name << ": " << text);
  }
}
