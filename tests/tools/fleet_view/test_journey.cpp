#include <boost/test/unit_test.hpp>

#include "tests/support/files.hpp"
#include "tools/fleet_view/fleet_metrics.hpp"
#include "tools/fleet_view/journey.hpp"
#include "tools/fleet_view/view.hpp"

using namespace signalbox;
using namespace signalbox::fleet_view;

namespace {

/// Clocks differ: a message says when it was sent by its own, and arrives `age` later by ours.
Said said(std::string_view from, schema::Message message, Duration ours, Duration theirs, Duration age = 0s) {
  auto out = std::make_shared<schema::Delivery>();
  out->envelope.source = ProcessName(from);
  out->envelope.sent = theirs;
  out->age = age;
  out->message = std::move(message);
  return {instant_at(ours + age), out};
}

schema::DecisionRecord record() {
  schema::DecisionRecord out;
  out.cluster = ClusterName("west");
  out.decision = "d-7";
  out.class_name = "chat", out.rule = "line 3";
  out.request_class = ClassIndex(0u);
  out.snapshot = {{2, ProcessName("o1")}, 9};
  out.engine = EngineIndex(1u), out.engine_name = EngineName("w1");
  out.prompt_tokens = 90, out.output_tokens = 16;
  out.arrived = 1000s;
  out.took = 250ms;
  schema::CandidateRow chosen, other;
  chosen.engine = EngineIndex(1u), chosen.fate = schema::CandidateFate::chosen, chosen.total_s = 0.1;
  other.engine = EngineIndex(0u), other.fate = schema::CandidateFate::dearer, other.total_s = 0.3;
  out.candidates = {chosen, other};
  out.attempts = {{EngineIndex(0u), schema::AttemptEnd::connect_error, 0, 1ms, 0ms, 2ms},
                  {EngineIndex(1u), schema::AttemptEnd::succeeded, 200, 2ms, 40ms, 250ms}};
  return out;
}

RowNames names() {
  return {[](const Digest&, EngineIndex row) { return row.at() == 1 ? "w1" : "e1"; }, {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_request_is_followed_across_processes_and_clocks) {
  std::vector<Said> all;
  schema::RoutingSnapshot plan;
  plan.cluster = ClusterName("west"), plan.version = record().snapshot;
  plan.weights = {{ClassIndex(0u), EngineIndex(1u), 0.75, 0}};
  all.push_back(said("o1", plan, 49s, 7s));
  schema::HealthVerdict verdict;
  verdict.engine = EngineName("w1"), verdict.detail = "fresh", verdict.state = HealthState::ready;
  all.push_back(said("monitor", verdict, 49500ms, 3s));
  schema::EngineSignal signal;
  signal.engine = EngineName("w1"), signal.running = 2, signal.reading_age = 100ms;
  all.push_back(said("proxy", signal, 49900ms, 5s));
  // The router's clock is 950 s ahead of ours: 1000 s there are 50 s here.
  all.push_back(said("router", record(), 50300ms, 1000300ms, 2ms));
  schema::OutcomeReport report;
  report.cluster = ClusterName("west"), report.number = 4;
  all.push_back(said("router", report, 50500ms, 1000500ms));
  schema::RoutingSnapshot next = plan;
  next.version.sequence = 10;
  next.covers = {{ProcessName("router"), {}, 4}};
  all.push_back(said("o1", next, 51s, 9s));
  BOOST_TEST(as_text({*journey(all, "d-7", names())}) ==
             "journey\n"
             "   at_s  process  what             detail\n"
             "-1.0000  o1       plan 2@o1.9      optimal, gap 0.000 %; weights of its class: w1 0.75\n"
             "-0.5000  monitor  verdict on w1    ready: fresh\n"
             "-0.2000  proxy    signal of w1     2 running, 0 waiting, slowness 1.00\n"
             " 0.0000  router   arrived          class chat (line 3), 90 prompt tokens, 16 output tokens "
             "expected or measured\n"
             " 0.0000  router   decision         w1: w1 0.1000 s, e1 0.3000 s\n"
             " 0.0010  router   attempt 1 began  on e1\n"
             " 0.0020  router   attempt 1 ended  no connection, status 0\n"
             " 0.0020  router   attempt 2 began  on w1\n"
             " 0.0400  router   first byte 2     from w1\n"
             " 0.2500  router   attempt 2 ended  answered to the end, status 200\n"
             " 0.5000  router   report 4         counts it for the plan\n"
             " 1.0000  o1       plan 2@o1.10     knows that report\n");
  BOOST_TEST(!journey(all, "d-8", names()).has_value());
}

BOOST_AUTO_TEST_CASE(a_refused_request_has_a_short_way) {
  schema::DecisionRecord refused;
  refused.decision = "d-8", refused.class_name = "batch", refused.rule = "line 9";
  refused.refused = schema::RefuseReason::shed_by_plan, refused.status = 429;
  refused.arrived = 10s, refused.took = 1ms;
  const auto table = journey({said("router", refused, 20s, 10001ms)}, "d-8", names());
  BOOST_TEST_REQUIRE(table.has_value());
  BOOST_TEST(table->rows.size() == 2u);
  BOOST_TEST(std::get<std::string>(table->rows[1][2]) == "refused with 429");
}

BOOST_AUTO_TEST_CASE(the_exporters_metrics_are_documented) {
  std::string page =
      "# Metrics of the fleet\n\nWhat `signalbox exporter` tells Prometheus: what no single process knows. "
      "All are gauges; what is "
      "not\nknown is left out. Written by the tests of `tools/fleet_view` with `SIGNALBOX_REWRITE=1`.\n\n| "
      "metric | "
      "labels | |\n| --- | --- | --- |\n";
  for (const FleetMetric& metric : fleet_metric_list)
    page += fmt::format("| `{}` | {} | {} |\n", metric.name, metric.labels, metric.help);
  tests::check_golden(tests::source_path("docs/fleet-metrics.md"), page);
}

BOOST_AUTO_TEST_CASE(every_metric_is_declared_and_written_once) {
  const FleetView empty;
  const std::string text = fleet_metrics(empty, instant_at(1s));
  std::size_t declared = 0;
  for (std::size_t at = 0; (at = text.find("# TYPE ", at)) != std::string::npos; ++at) ++declared;
  BOOST_TEST(declared == fleet_metric_list.size());
  for (const FleetMetric& metric : fleet_metric_list)
    BOOST_TEST(text.find(fmt::format("# HELP {} {}\n", metric.name, metric.help)) != std::string::npos,
               metric.name);
}
