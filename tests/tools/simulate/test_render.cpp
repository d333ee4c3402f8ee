#include <simdjson.h>

#include <boost/test/unit_test.hpp>

#include "tools/simulate/render.hpp"

using namespace signalbox;
using namespace signalbox::simulate;

namespace {

Report small() {
  Report report;
  report.scenario = "a \"quoted\" name";
  report.engines = {"e1", "e2"};
  report.loads = {"chat"};
  for (int s = 1; s <= 3; ++s) {
    SampleRow row;
    row.at = instant_at(std::chrono::seconds(s));
    row.engines = {{0.25, 0.2, 3, 0, 0.5}, {0.75, 0.8, 9, 1, 0.25}};
    report.samples.push_back(row);
  }
  Phase phase;
  phase.until = instant_at(3s);
  PhaseLoad load;
  load.offered = 10, load.served = 7;
  load.refused[static_cast<std::size_t>(schema::RefuseReason::shed_by_plan)] = 2;
  load.failed[static_cast<std::size_t>(schema::AttemptEnd::broken_stream)] = 1;
  std::vector<double> times{0.3, 0.1, 0.2};
  load.ttft_s = quantiles(times);
  phase.loads = {load};
  report.phases = {phase, phase};
  report.phases[1].opens_with = "engine e1 takes 3 times as long";
  report.answers = {
      {{{0, {.before = 0.4, .final = 0.25, .beyond = 0.015, .reversals = 1, .settled_after = 2s}},
        {1, {.before = 0.6, .final = 0.75, .beyond = 0, .reversals = 0, .settled_after = {}}}},
       StepAnswer{.before = 0, .final = 1, .beyond = 0.042, .reversals = 0, .settled_after = 3s}}};
  report.warnings = {"0.1 s x y: z"};
  return report;
}

}  // namespace

BOOST_AUTO_TEST_CASE(quantiles_are_nearest_ranks) {
  std::vector<double> values{4, 1, 3, 2};
  const Quantiles q = quantiles(values);
  BOOST_TEST((q.count == 4 && q.mean == 2.5 && q.p50 == 2 && q.p99 == 4));
  std::vector<double> none;
  BOOST_TEST(quantiles(none).count == 0u);
}

BOOST_AUTO_TEST_CASE(a_report_as_json_and_csv) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  const std::string text = as_json(small());
  BOOST_REQUIRE_MESSAGE((parser.parse(text).get(json) == simdjson::SUCCESS), text);
  BOOST_TEST(std::uint64_t(json.at_pointer("/phases/0/loads/0/refused/shed_by_plan")) == 2u);
  BOOST_TEST(double(json.at_pointer("/phases/0/loads/0/ttft_s/p50")) == 0.2);
  BOOST_TEST(double(json.at_pointer("/phases/1/weights/0/settled_after_s")) == 2);
  BOOST_TEST(json.at_pointer("/phases/1/weights/1/settled_after_s").is_null());
  const std::string csv = as_csv(small());
  BOOST_TEST(csv.starts_with(
      "t_s,waiting_at_routers,e1.planned,e1.served,e1.running,e1.waiting,e1.kv_usage,e2.planned"));
  BOOST_TEST(csv.find("\n2.000,0,0.250000,0.200000,3,0,0.5000,0.750000,0.800000,9,1,0.2500\n") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_report_for_people_says_what_was_refused_and_how_weights_settled) {
  const std::string text = as_text(small());
  for (const char* part : {"2 shed_by_plan", "1 broken_stream", "0.200/0.200/0.300",
                           "engine e1 takes 3 times as long", "2.0 s", "never", "4.2%", "0.1 s x y: z"})
    BOOST_TEST(text.find(part) != std::string::npos, part << " in\n" << text);
}
