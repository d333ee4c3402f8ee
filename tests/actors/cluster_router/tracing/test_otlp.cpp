#include <simdjson.h>

#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/tracing/context.hpp"
#include "actors/cluster_router/tracing/otlp.hpp"

using namespace signalbox;
using namespace signalbox::tracing;

namespace {

EndedTrace retried() {
  EndedTrace out;
  out.trace.id = "0af7651916cd43dd8448eb211c80319c";
  out.trace.parent = "b7ad6b7169203331";
  out.trace.decision = {7, 42};
  out.trace.method = "POST";
  out.trace.path = "/v1/chat/completions";
  out.trace.endpoint = http::Endpoint::chat;
  out.trace.attempts = 3;
  out.trace.input_tokens = 9;
  auto table = std::make_shared<schema::FleetTable>();
  for (const char* name : {"e0", "e1", "e\"2"}) {
    table->engines.emplace_back();
    table->engines.back().name = EngineName(std::string(name) == "e\"2" ? "e2" : name);
    table->engines.back().url = "http://127.0.0.1:8000";
  }
  out.table = table;
  schema::DecisionRecord& r = out.record;
  r.model = ModelName("m");
  r.class_name = "chat \"quick\"\n";
  r.status = 200;
  r.engine = EngineIndex(1);
  r.engine_name = EngineName("e1");
  r.arrived = 5s;
  r.took = 300ms;
  r.candidates = {
      {.engine = EngineIndex(1), .fate = schema::CandidateFate::chosen, .queue_s = 0.25, .total_s = 0.5},
      {.engine = EngineIndex(0), .fate = schema::CandidateFate::tried, .total_s = 0}};
  r.attempts = {{EngineIndex(0), schema::AttemptEnd::connect_error, 0, 1ms, 0ms, 2ms},
                {EngineIndex(1), schema::AttemptEnd::succeeded, 200, 2ms, 100ms, 300ms}};
  return out;
}

struct Parsed {
  explicit Parsed(const std::string& text) {
    BOOST_REQUIRE(parser.parse(text).get(root) == simdjson::SUCCESS);
  }
  simdjson::dom::element span(std::size_t i) const {
    return root.at_pointer("/resourceSpans/0/scopeSpans/0/spans").at(i).value();
  }
  simdjson::dom::parser parser;
  simdjson::dom::element root;
};

std::string_view text(simdjson::dom::element in, const char* key) { return in[key].get_string().value(); }

/// The value of one attribute, as its JSON.
std::string attribute(simdjson::dom::element span, std::string_view key) {
  const simdjson::dom::array rows = span["attributes"].get_array().value();
  for (const auto row : rows)
    if (text(row, "key") == key) return simdjson::minify(row["value"].value());
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_request_is_a_span_and_its_attempts_are_spans_below_it) {
  const std::vector<EndedTrace> traces{retried()};
  const Parsed out(otlp_json(traces, {"fleet", ClusterName("east"), ProcessName("router-1")}, 1'000'000s));
  const auto request = out.span(0), first = out.span(1), last = out.span(2);
  BOOST_TEST(out.root.at_pointer("/resourceSpans/0/scopeSpans/0/spans").get_array().value().size() == 3u);
  const std::string id = fmt::format("{:016x}", span_of({7, 42}, 0));
  BOOST_TEST(text(request, "name") == "POST /v1/chat/completions");
  BOOST_TEST(text(request, "parentSpanId") == "b7ad6b7169203331");
  BOOST_TEST(text(request, "spanId") == id);
  BOOST_TEST(text(request, "startTimeUnixNano") == "1000005000000000");
  BOOST_TEST(text(request, "endTimeUnixNano") == "1000005300000000");
  BOOST_TEST(attribute(request, "http.response.status_code") == R"({"intValue":"200"})");
  BOOST_TEST(attribute(request, "signalbox.class") == R"({"stringValue":"chat \"quick\"\n"})");
  BOOST_TEST(attribute(request, "signalbox.cost.queue_s") == R"({"doubleValue":0.25})");
  BOOST_TEST(attribute(request, "signalbox.candidates.engines") ==
             R"({"arrayValue":{"values":[{"stringValue":"e1"}]}})");
  BOOST_TEST(attribute(request, "gen_ai.usage.input_tokens") == R"({"intValue":"9"})");
  BOOST_TEST(attribute(request, "gen_ai.usage.output_tokens").empty());
  // The engine was told the span of its attempt: the last one made was the third.
  BOOST_TEST(text(first, "spanId") == fmt::format("{:016x}", span_of({7, 42}, 1)));
  BOOST_TEST(text(last, "spanId") == fmt::format("{:016x}", span_of({7, 42}, 3)));
  BOOST_TEST(text(first, "parentSpanId") == id);
  BOOST_TEST(text(last, "parentSpanId") == id);
  BOOST_TEST(attribute(first, "signalbox.engine") == R"({"stringValue":"e0"})");
  BOOST_TEST(attribute(first, "error.type") == R"({"stringValue":"connect_error"})");
  BOOST_TEST(first["status"]["code"].get_int64().value() == 2);
  BOOST_TEST(last["status"].get_object().value().size() == 0u);
  BOOST_TEST(last["events"].at(0)["timeUnixNano"].get_string().value() == "1000005100000000");
}

BOOST_AUTO_TEST_CASE(a_refused_request_says_why) {
  EndedTrace refused = retried();
  refused.trace.parent.clear();
  refused.trace.error = "refused";
  refused.table = nullptr;
  refused.record.attempts.clear();
  refused.record.candidates.clear();
  refused.record.refused = schema::RefuseReason::no_engine;
  refused.record.status = 503;
  const std::vector<EndedTrace> traces{refused, refused};
  const Parsed out(otlp_json(traces, {}, 0s));
  BOOST_TEST(out.root.at_pointer("/resourceSpans/0/scopeSpans/0/spans").get_array().value().size() == 2u);
  BOOST_TEST((out.span(0)["parentSpanId"].error() == simdjson::NO_SUCH_FIELD));
  BOOST_TEST(attribute(out.span(0), "signalbox.refused") == R"({"stringValue":"no_engine"})");
  BOOST_TEST(attribute(out.span(0), "error.type") == R"({"stringValue":"refused"})");
  BOOST_TEST(out.span(0)["status"]["message"].get_string().value() == "refused");
}
