#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "cluster-config/schema/settings.hpp"
#include "cluster-config/schema/topology.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::config;

namespace {

const std::filesystem::path folder = tests::source_path("tests/cluster-config/schema");

Config good(const Overrides& overrides = {}, std::string_view more = {}) {
  const std::string text = tests::read_file(folder / "good.toml") + std::string(more);
  Parsed parsed = parse_config(text, "configs/good.toml", overrides);
  BOOST_REQUIRE_MESSAGE(parsed.config.has_value(), render(parsed.mistakes, "good.toml"));
  return std::move(*parsed.config);
}

}  // namespace

// What people read when a configuration is wrong: every file of broken/ beside its transcript.
BOOST_AUTO_TEST_CASE(broken_configurations_are_refused_with_these_words) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "broken")) {
    if (entry.path().extension() != ".toml") continue;
    ++seen;
    const std::string file = entry.path().filename().string();
    const Parsed parsed = parse_config(tests::read_file(entry.path()), file);
    BOOST_TEST(!parsed.config.has_value(), file << " is accepted");
    tests::check_golden(std::filesystem::path(entry.path()).replace_extension(".txt"),
                        render(parsed.mistakes, file));
  }
  BOOST_TEST(seen >= 12);
}

BOOST_AUTO_TEST_CASE(a_small_fleet_is_resolved_whole) {
  tests::check_golden(folder / "good.txt", summary(good()));
  const Config config = good();
  BOOST_TEST(config.policy == "configs/t.policy");
  BOOST_TEST(config.state_dir == ".signalbox/t");
  BOOST_TEST(config.keys_dir == ".signalbox/t/keys");
  BOOST_TEST(config.engines[0].rack.str() == "e1");
  BOOST_TEST(config.find_process(ProcessName("router"))->listen == "127.0.0.1:18080");
  BOOST_TEST(config.find_process(ProcessName("proxy"))->engines.size() == 1u);
  BOOST_TEST(!config.find_process(ProcessName("none")));
}

BOOST_AUTO_TEST_CASE(an_engine_with_https_has_an_identity) {
  const auto engine = [](const std::string& more) {
    std::string text = tests::read_file(folder / "good.toml");
    text.replace(text.find("http://+30"), 10, "https://engines.example:30");
    text.replace(text.find("kind = \"sim\""), 12, more);
    const Parsed parsed = parse_config(text, "configs/good.toml");
    BOOST_REQUIRE_MESSAGE(parsed.config.has_value(), render(parsed.mistakes, "good.toml"));
    return *parsed.config;
  };
  BOOST_TEST(engine("").engines[0].tls_identity == "name:engines.example");
  const Config named = engine("tls_name = \"e1\"\ntls_authorities = \"ca.pem\"");
  BOOST_TEST(named.engines[0].tls_identity == "name:e1");
  BOOST_TEST(named.engines[0].tls_authorities == "configs/ca.pem");
  std::string colons = "AB", digits = "ab";
  for (int i = 1; i < 32; ++i) colons += ":0F", digits += "0f";
  const Config pinned = engine("tls_sha256 = [\"" + colons + "\"]");
  BOOST_TEST(pinned.engines[0].tls_identity == "sha256:" + digits);
  BOOST_TEST((pinned.digest != named.digest));
  BOOST_TEST((engine("tls_name = \"e1\"\ntls_authorities = \"/etc/ca.pem\"").digest == named.digest));
}

BOOST_AUTO_TEST_CASE(overrides_move_a_fleet_as_a_whole) {
  const Config moved = good({.port_base = 30000, .state_dir = "/srv/x", .keys_dir = {}});
  BOOST_TEST(moved.find_process(ProcessName("router"))->listen == "127.0.0.1:30000");
  BOOST_TEST(moved.engines[0].url == "http://127.0.0.1:30030");
  BOOST_TEST(moved.buses[0].publish == "tcp://127.0.0.1:30020");
  BOOST_TEST(moved.state_dir == "/srv/x");
  BOOST_TEST(moved.keys_dir == "/srv/x/keys");
}

BOOST_AUTO_TEST_CASE(the_digest_names_what_runs_and_not_where_it_keeps_its_files) {
  const Digest digest = good().digest;
  BOOST_TEST((good({.port_base = {}, .state_dir = "/elsewhere", .keys_dir = "/keys"}).digest == digest));
  BOOST_TEST((good({.port_base = 30000, .state_dir = {}, .keys_dir = {}}).digest != digest));
  BOOST_TEST((good({}, "\n[intervals]\nscrape = \"400ms\"\n").digest != digest));
  BOOST_TEST((good({}, "\n# a comment\n").digest == digest));
}

BOOST_AUTO_TEST_CASE(a_link_holds_both_ways_unless_the_other_has_its_own) {
  constexpr std::string_view west = R"(
[[cluster]]
name = "west"
region = "us-west"
zone = "us"

[[cluster]]
name = "north"
region = "us-north"
zone = "us"

[[link]]
from = "east"
to = "west"
rtt = "30ms"

[[link]]
from = "west"
to = "east"
rtt = "60ms"

[[link]]
from = "north"
to = "east"
rtt = "5ms"
)";
  const Config config = good({}, west);
  const ClusterName e("east"), w("west"), n("north");
  BOOST_TEST((config.rtt(e, w, 1s) == 30ms));
  BOOST_TEST((config.rtt(w, e, 1s) == 60ms));
  BOOST_TEST((config.rtt(e, n, 1s) == 5ms));
  BOOST_TEST((config.rtt(n, w, 1s) == 1s));
  BOOST_TEST((config.rtt(n, n, 1s) == 0s));
}

BOOST_AUTO_TEST_CASE(an_engine_is_declared_as_fast_as_its_scale_says) {
  std::string text = tests::read_file(folder / "good.toml");
  text.replace(text.find("kind = \"sim\""), 12,
               "kind = \"sim\"\ncapacity_scale = 2\nsimulated = { speed = 0.5 }");
  const Parsed parsed = parse_config(text, "good.toml");
  BOOST_REQUIRE_MESSAGE(parsed.config.has_value(), render(parsed.mistakes, "good.toml"));
  const Engine& engine = parsed.config->engines[0];
  BOOST_TEST(parsed.config->declared_profile(engine).a == 0.005);
  BOOST_TEST(parsed.config->profile_of(engine).a == 0.01);
  BOOST_TEST(engine.simulated->speed == 0.5);
  BOOST_TEST(engine.simulated->kv_tokens == 1000u);
}

BOOST_AUTO_TEST_CASE(every_setting_lies_in_a_declared_table_and_says_what_it_is) {
  for (const Setting& setting : settings()) {
    const auto tables = setting_tables();
    BOOST_TEST(std::ranges::count(tables, setting.table, &SettingTable::name) == 1, setting.key);
    BOOST_TEST(setting.sentence.ends_with('.'), setting.key);
    BOOST_TEST(setting.low <= setting.high, setting.key);
    BOOST_TEST(std::ranges::count_if(settings(),
                                     [&](const Setting& other) {
                                       return other.table == setting.table && other.key == setting.key;
                                     }) == 1,
               setting.key);
  }
}

BOOST_AUTO_TEST_CASE(the_settings_page_is_the_table) {
  tests::check_golden(tests::source_path("docs/settings.md"), settings_as_markdown());
  BOOST_TEST(settings_as_text().find("leader_timeout") != std::string::npos);
}
