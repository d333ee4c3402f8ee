// What a policy says of one request, one engine, one number.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "cluster-config/policy/compile.hpp"
#include "cluster-config/policy/knobs.hpp"
#include "cluster-config/policy/quantity.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::policy;

namespace {

constexpr std::string_view fleet = R"(policy fleet version 41 owner "routing-oncall" review_by 2027-02-01
topology { zone EU { region eu-west }  zone US { region us-east, us-west } }
models { m-large versions 3.1..3.2 ; m-small versions 1.0 }
class chat_eu { tenants acme_eu, bank_*  model m-large >= 3.1  criticality critical  residency zone EU strict
                demand 0..1200 tok/s }
class chat    { tenants acme_us  model m-large = 3.2  asked standard, none  criticality standard  residency zone EU, US }
class bulk    { tenants acme_us  model m-large  tokens 0..4000 tok  criticality sheddable  residency any  shed cost 20s }
class batch   { tenants *  model m-small  criticality sheddable  residency any }
otherwise reject 403
shed floor standard 5%
)";

const CompiledPolicy& fleet_policy() {
  static const CompiledPolicy compiled = [] {
    Compilation out = compile(fleet);
    BOOST_REQUIRE_MESSAGE(out.policy.has_value(), render(out.errors, fleet, "fleet"));
    return std::move(*out.policy);
  }();
  return compiled;
}

std::string outcome(const Classified& got) {
  if (!got.admitted()) return fmt::format("{} {}", got.status, name_of(got.rule));
  return fmt::format("{} {}{}", fleet_policy().at(got.index).name, name_of(got.criticality),
                     got.capped ? " capped" : "");
}

}  // namespace

BOOST_AUTO_TEST_CASE(requests_get_the_first_class_that_takes_them) {
  constexpr auto critical = Criticality::critical, standard = Criticality::standard,
                 sheddable = Criticality::sheddable;
  struct Row {
    const char* name;
    RequestAttributes request;
    const char* outcome;
  };
  for (const Row& row : {
           Row{"by name", {"acme_eu", "m-large", "", {}, 0, 0}, "chat_eu critical"},
           Row{"by prefix", {"bank_of_x", "m-large", "3.1", {}, 0, 0}, "chat_eu critical"},
           Row{"a prefix is not a part", {"my_bank_1", "m-large", "", {}, 0, 0}, "403 otherwise"},
           Row{"no version is the newest", {"acme_us", "m-large", "", {}, 0, 0}, "chat standard"},
           Row{"another version, another class", {"acme_us", "m-large", "3.1", {}, 0, 0}, "bulk sheddable"},
           Row{"too long for its class", {"acme_us", "m-large", "3.1", {}, 0, 4001}, "403 otherwise"},
           Row{"asking for less", {"acme_eu", "m-large", "", sheddable, 0, 0}, "chat_eu sheddable"},
           Row{"asking for the same", {"acme_eu", "m-large", "", critical, 0, 0}, "chat_eu critical"},
           Row{"asking for more", {"acme_us", "m-small", "", critical, 0, 0}, "batch sheddable capped"},
           Row{"asked chooses the class", {"acme_us", "m-large", "", sheddable, 0, 0}, "bulk sheddable"},
           Row{"asked for what the class names", {"acme_us", "m-large", "", standard, 0, 0}, "chat standard"},
           Row{"nobody is a tenant too", {"", "m-small", "", {}, 0, 0}, "batch sheddable"},
           Row{"unknown model", {"acme_eu", "m-huge", "", {}, 0, 0}, "404 unknown_model"},
           Row{"unknown version", {"acme_eu", "m-large", "4.0", {}, 0, 0}, "404 unknown_version"},
           Row{"no version at all", {"acme_eu", "m-large", "latest", {}, 0, 0}, "404 unknown_version"},
       })
    BOOST_TEST(outcome(fleet_policy().classify(row.request)) == row.outcome, row.name);
}

BOOST_AUTO_TEST_CASE(residency_allows_declared_places_only) {
  struct Row {
    const char* class_name;
    const char* region;
    const char* zone;
    bool allowed;
  };
  for (const Row& row :
       {Row{"chat_eu", "eu-west", "EU", true}, Row{"chat_eu", "us-east", "US", false},
        Row{"chat_eu", "us-east", "EU", false}, Row{"chat_eu", "", "EU", false},
        Row{"chat_eu", "", "", false}, Row{"chat", "us-west", "US", true}, Row{"chat", "eu-west", "EU", true},
        Row{"chat", "mars", "SOL", false}, Row{"batch", "mars", "SOL", true}})
    BOOST_TEST(fleet_policy().allows(*fleet_policy().find_class(row.class_name),
                                     {"", "", row.region, row.zone}) == row.allowed,
               row.class_name << " in " << row.region << ", " << row.zone);
}

BOOST_AUTO_TEST_CASE(classes_explain_themselves) {
  std::string text;
  for (std::size_t i = 0; i < fleet_policy().classes.size(); ++i)
    text += fleet_policy().explain(ClassIndex(i));
  tests::check_golden(tests::source_path("tests/cluster-config/policy/golden/explain.txt"), text);
}

BOOST_AUTO_TEST_CASE(the_canonical_text_says_every_number_in_force) {
  tests::check_golden(tests::source_path("tests/cluster-config/policy/golden/canonical.txt"),
                      canonical_text(fleet_policy()));
}

BOOST_AUTO_TEST_CASE(rows_hold_resolved_numbers) {
  const ClassRow& eu = fleet_policy().at(*fleet_policy().find_class("chat_eu"));
  BOOST_TEST(eu.shed_cost_seconds == 600);
  BOOST_TEST(eu.demand_high_tokens_per_s == 1200);
  BOOST_TEST(eu.line == 4);
  BOOST_TEST(fleet_policy().at(*fleet_policy().find_class("bulk")).shed_cost_seconds == 20);
  BOOST_TEST(fleet_policy().at(*fleet_policy().find_class("chat")).floor_share == 0.05);
}

BOOST_AUTO_TEST_CASE(defaults_are_those_of_the_routing_study_and_lie_in_their_bounds) {
  const CompiledPolicy fresh;
  BOOST_TEST(fresh.routing.eta == 1);
  BOOST_TEST(fresh.routing.eta_local == 3);
  BOOST_TEST(fresh.routing.tw == 3);
  BOOST_TEST(fresh.routing.kv_guard == 0.95);
  BOOST_TEST(fresh.routing.xi == 0.6);
  BOOST_TEST(fresh.routing.draws == 4u);
  for (const Knob& knob : knobs()) {
    BOOST_TEST((knob.get(fresh) >= knob.low && knob.get(fresh) <= knob.high),
               knob.clause << " " << knob.word);
    CompiledPolicy changed;
    knob.set(changed, knob.high);
    BOOST_TEST(std::abs(knob.get(changed) - knob.high) <= 1e-12 * knob.high, knob.clause << " " << knob.word);
  }
}

BOOST_AUTO_TEST_CASE(quantities_are_read_exactly_and_written_back) {
  struct Row {
    const char* digits;
    const char* unit;
    Dimension dimension;
    double value;
    const char* written;
  };
  for (const Row& row :
       {Row{"7", "%", Dimension::share, 0.07, "7%"}, Row{"0.07", "%", Dimension::share, 0.0007, "0.07%"},
        Row{"12.5", "%", Dimension::share, 0.125, "12.5%"}, Row{"0.1", "", Dimension::factor, 0.1, "0.1"},
        Row{"100000", "", Dimension::factor, 1e5, "100000"}, Row{"64", "", Dimension::count, 64, "64"},
        Row{"250", "ms", Dimension::time, 0.25, "250ms"}, Row{"1.5", "s", Dimension::time, 1.5, "1500ms"},
        Row{"2", "min", Dimension::time, 120, "120s"},
        Row{"8000", "tok", Dimension::tokens, 8000, "8000 tok"},
        Row{"1200.5", "tok/s", Dimension::rate, 1200.5, "1200.5 tok/s"}}) {
    const auto measured = measure(row.digits, row.unit, row.dimension);
    BOOST_REQUIRE(measured.has_value());
    BOOST_TEST(*measured == row.value, row.digits << row.unit);
    BOOST_TEST(write(*measured, row.dimension) == row.written);
  }
  BOOST_TEST(!measure("2.5", "", Dimension::count).has_value());
  BOOST_TEST(!measure("2", "s", Dimension::share).has_value());
  BOOST_TEST(!measure("2", "parsec", Dimension::time).has_value());
}

BOOST_AUTO_TEST_CASE(the_layout_is_one) {
  const std::string text =
      tests::read_file(tests::source_path("tests/cluster-config/policy/golden/loose.policy"));
  const auto formatted = format(text);
  BOOST_REQUIRE(formatted.has_value());
  tests::check_golden(tests::source_path("tests/cluster-config/policy/golden/formatted.policy"), *formatted);
}
