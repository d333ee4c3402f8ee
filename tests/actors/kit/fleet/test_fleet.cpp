#include <boost/test/unit_test.hpp>

#include "actors/kit/fleet/ejection.hpp"
#include "actors/kit/fleet/table.hpp"
#include "actors/kit/fleet/terms.hpp"
#include "actors/kit/fleet/verdicts.hpp"
#include "cluster-config/policy/compile.hpp"

using namespace signalbox;
using namespace signalbox::kit;

namespace {

schema::FleetTable table() {
  schema::FleetTable out;
  out.clusters = {{ClusterName("east"), DomainName("us"), DomainName("z1")},
                  {ClusterName("west"), DomainName("eu"), DomainName("z2")}};
  const auto engine = [](std::string_view name, std::size_t cluster, std::vector<ModelName> models) {
    schema::EngineRow row;
    row.name = EngineName(name);
    row.cluster = ClusterIndex(cluster);
    row.rack = DomainName(name);
    row.models = std::move(models);
    row.step_s = 0.02;
    return row;
  };
  out.engines = {engine("a", 0, {ModelName("m")}), engine("b", 1, {ModelName("m")}),
                 engine("c", 0, {ModelName("n")})};
  out.links = {{ClusterIndex(0), ClusterIndex(1), 0.03}};
  out.content = content_of(out);
  return out;
}

schema::HealthVerdict verdict(HealthState state, bool isolated = false) {
  schema::HealthVerdict out;
  out.engine = EngineName("a");
  out.state = state;
  out.isolated = isolated;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_table_is_known_by_its_content) {
  BOOST_TEST(check_table(table()).has_value());
  auto other = table();
  other.engines[0].url = "http://elsewhere";
  BOOST_TEST(!check_table(other).has_value());
  BOOST_TEST((content_of(other) != table().content));
  auto dangling = table();
  dangling.engines[0].cluster = ClusterIndex(7);
  dangling.content = content_of(dangling);
  BOOST_TEST(!check_table(dangling).has_value());
  auto twice = table();
  twice.engines[1].name = twice.engines[0].name;
  twice.content = content_of(twice);
  BOOST_TEST(!check_table(twice).has_value());
}

BOOST_AUTO_TEST_CASE(who_may_serve_a_class_follows_model_and_residency) {
  const auto p = policy::compile_text(
      "policy p version 1\ntopology { zone z1 { region us }  zone z2 { region eu } }\nmodels { m versions "
      "1.0 ; n versions 1.0 }\n"
      "class home { tenants a model m criticality standard residency zone z1 strict }\n"
      "class any { tenants * model m criticality standard residency any }\notherwise reject 403\n",
      "p");
  BOOST_REQUIRE_MESSAGE(p.has_value(), (p ? "" : p.error().text()));
  const auto t = table();
  BOOST_TEST((allowed_engines(t, *p, ClassIndex(0)) == std::vector{EngineIndex(0)}));
  BOOST_TEST((allowed_engines(t, *p, ClassIndex(1)) == std::vector{EngineIndex(0), EngineIndex(1)}));
  BOOST_TEST((fit_of(t, *p, ClassIndex(0), EngineIndex(1)) == Fit::not_allowed));
  BOOST_TEST((fit_of(t, *p, ClassIndex(0), EngineIndex(2)) == Fit::wrong_model));
  BOOST_TEST((as_bitmap({EngineIndex(0), EngineIndex(9)}, 10) == schema::Bytes{1, 2}));
  BOOST_TEST((round_trips_s(t, ClusterIndex(0), 1) == std::vector<double>{0, 0.03}));
  BOOST_TEST((round_trips_s(t, ClusterIndex(1), 1) == std::vector<double>{1, 0}));
}

BOOST_AUTO_TEST_CASE(terms_are_believed_within_reach) {
  const auto at = [](std::uint64_t epoch, std::uint64_t n) { return first_counter(epoch) + n; };
  struct Row {
    std::string_view what;
    std::uint64_t counter, known, epoch;
    bool plausible;
  };
  const Row rows[] = {
      {"the next", at(1, 6), at(1, 5), 1, true},
      {"a jump of 1,000", at(1, 1005), at(1, 5), 1, true},
      {"a jump of 1,001", at(1, 1006), at(1, 5), 1, false},
      {"anything for a newcomer", at(1, 123456), 0, 1, true},
      {"the next epoch, raised here too", at(2, 1), at(1, 5), 2, true},
      {"an epoch that nobody raised here", at(2, 1), at(1, 5), 1, false},
      {"an old epoch's", at(1, 6), at(2, 1), 2, true},
  };
  for (const Row& row : rows) BOOST_TEST_CONTEXT(row.what)
  BOOST_TEST(is_plausible(row.counter, row.known, row.epoch) == row.plausible);
}

BOOST_AUTO_TEST_CASE(the_monitor_that_thinks_best_of_an_engine_counts) {
  const ProcessName m1("m1"), m2("m2");
  const Instant t = instant_at(100s);
  VerdictBook book;
  BOOST_TEST(!book.of(EngineName("a"), t));
  BOOST_TEST(book.hear(verdict(HealthState::gone), m1, 0s, t));
  BOOST_TEST(!book.hear(verdict(HealthState::gone), m1, 0s, t));
  BOOST_TEST((book.of(EngineName("a"), t)->state == HealthState::gone));
  book.hear(verdict(HealthState::degraded), m2, 0s, t);
  BOOST_TEST((book.of(EngineName("a"), t)->state == HealthState::degraded));
  book.hear(verdict(HealthState::ready, true), m2, 0s, t);  // isolated: it does not know
  BOOST_TEST((book.of(EngineName("a"), t)->state == HealthState::gone));
  book.hear(verdict(HealthState::draining), m1, 0s, t);
  book.hear(verdict(HealthState::ready), m2, 0s, t);
  BOOST_TEST((book.of(EngineName("a"), t)->state == HealthState::draining));
  BOOST_TEST(!book.of(EngineName("a"), t + 16s));
  book.hear(verdict(HealthState::ready), m2, 10s, t);  // old when it came
  BOOST_TEST((book.of(EngineName("a"), t + 6s)->state == HealthState::draining));
  book.forget_old(t + 60s);
  BOOST_TEST(!book.of(EngineName("a"), t));
}

namespace {

/// Six engines of one model in two regions, all accused a while ago; their signals come now.
struct Trial {
  schema::FleetTable fleet = table();
  policy::CompiledPolicy policy;
  std::vector<schema::EngineSignal> signals;
  std::vector<Accusation> accusations;
  Instant now = instant_at(100s);

  Trial() {
    fleet.engines.resize(0);
    for (std::size_t i = 0; i < 6; ++i) {
      schema::EngineRow row;
      row.name = EngineName(std::string(1, static_cast<char>('a' + i)));
      row.cluster = ClusterIndex(i / 3);
      row.models = {ModelName("m")};
      fleet.engines.push_back(row);
    }
    signals.resize(6);
    for (const auto& signal : signals) accusations.push_back({instant_at(90s), &signal, instant_at(99s)});
    for (auto& signal : signals) signal.scrape = schema::ScrapeState::ok;
  }
  std::string believed_out() const {
    const auto not_believed = overruled(fleet, policy, accusations, now);
    std::string out;
    for (std::size_t e = 0; e < 6; ++e)
      if (!not_believed[e]) out += fleet.engines[e].name.str();
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(accusations_are_believed_up_to_the_policys_share_if_the_engines_contradict) {
  Trial all;  // 30 % of six, and of the three in each region at least one
  BOOST_TEST(all.believed_out() == "a");
  Trial unreachable;
  for (auto& signal : unreachable.signals) signal.scrape = schema::ScrapeState::unreachable;
  BOOST_TEST(unreachable.believed_out() == "abcdef");
  Trial silent;
  for (auto& a : silent.accusations) a.signal_at = instant_at(94s);
  BOOST_TEST(silent.believed_out() == "abcdef");
  Trial just_now;  // the signals are from before the accusation
  for (auto& a : just_now.accusations) a.since = instant_at(99500ms);
  BOOST_TEST(just_now.believed_out() == "abcdef");
  Trial one_dead;
  one_dead.signals[1].scrape = schema::ScrapeState::unreachable;
  BOOST_TEST(one_dead.believed_out() == "ab");
  Trial generous;
  generous.policy.eject.max_share = 0.7;
  BOOST_TEST(generous.believed_out() == "abde");
}

BOOST_AUTO_TEST_CASE(how_long_an_engine_has_been_accused_is_counted_here) {
  const ProcessName liar("m1"), honest("m2");
  VerdictBook book;
  const auto at = [](int s) { return instant_at(std::chrono::seconds(s)); };
  BOOST_TEST((book.accused_since(EngineName("a"), at(0)) == end_of_time));
  book.hear(verdict(HealthState::gone), liar, 0s, at(1));
  book.hear(verdict(HealthState::suspect), liar, 0s, at(2));  // it says again that it has just begun
  BOOST_TEST((book.accused_since(EngineName("a"), at(2)) == at(1)));
  book.hear(verdict(HealthState::ready), honest, 0s, at(2));
  BOOST_TEST((book.accused_since(EngineName("a"), at(2)) == end_of_time));
  book.hear(verdict(HealthState::ready), liar, 0s, at(3));
  book.hear(verdict(HealthState::gone), liar, 0s, at(9));
  BOOST_TEST((book.accused_since(EngineName("a"), at(9)) == at(9)));
}
