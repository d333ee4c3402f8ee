#include <boost/test/unit_test.hpp>

#include "tests/support/results.hpp"
#include "tools/fleet_view/expression.hpp"

using namespace signalbox;
using namespace signalbox::fleet_view;
using tests::error_of;

namespace {

schema::Delivery delivery(schema::Message message) {
  schema::Delivery out;
  out.topic = "signal/west/w1/";
  out.envelope.source = ProcessName("proxy-west");
  out.envelope.sequence = 42;
  out.age = 250ms;
  out.message = std::move(message);
  return out;
}

schema::EngineSignal signal() {
  schema::EngineSignal out;
  out.cluster = ClusterName("west"), out.engine = EngineName("w1");
  out.scrape = schema::ScrapeState::timed_out;
  out.reading_age = 1500ms;
  out.running = 3, out.waiting = 0;
  out.incarnation = {7, 99};
  out.names_matched = "vllm:num_requests_running vllm:kv";
  return out;
}

schema::RoutingSnapshot snapshot() {
  schema::RoutingSnapshot out;
  out.version = {{3, ProcessName("o1")}, 17};
  out.table = digest_of("table");
  out.weights = {{ClassIndex(0u), EngineIndex(0u), 0.25, 1}, {ClassIndex(0u), EngineIndex(1u), 0.75, 3}};
  return out;
}

RowNames names() {
  RowNames out;
  out.engine = [](const Digest& table, EngineIndex row) {
    return table == digest_of("table") ? "e" + std::to_string(row.value + 1) : std::string();
  };
  return out;
}

std::vector<const schema::MessageInfo*> all_types() {
  std::vector<const schema::MessageInfo*> out;
  for (const auto& info : schema::catalog()) out.push_back(&info);
  return out;
}

bool holds(std::string_view text, const schema::Message& message) {
  const auto expression = Expression::parse(text, all_types());
  BOOST_TEST_REQUIRE(error_of(expression) == "", text);
  return expression->holds(delivery(message), names());
}

}  // namespace

BOOST_AUTO_TEST_CASE(conditions_on_a_signal) {
  const struct {
    const char* text;
    bool expected;
  } rows[] = {
      {"running == 3", true},
      {"running > 3", false},
      {"running >= 3 and running <= 3", true},
      {"running < 3 or scrape == timed_out", true},
      {"not running < 3", true},
      {"!(running == 3)", false},
      {"running == 3 && scrape != ok", true},
      {"running", true},
      {"waiting", false},
      {"kv_usage", false},
      {"kv_usage > 0", false},
      {"kv_usage < 1", false},
      {"reading_age > 1s", true},
      {"reading_age_s > 1400ms", true},
      {"reading_age_s > 0.1min", false},
      {"body.reading_age == 1.5", true},
      {"age_s >= 0.25", true},
      {"sequence == 42", true},
      {"source == proxy-west", true},
      {"topic ~ /west/", true},
      {"message == engine_signal", true},
      {"engine == \"w1\"", true},
      {"names_matched ~ 'num_requests_running vllm'", true},
      {"names_matched ~ nothing", false},
      {"incarnation.counter == 7", true},
      {"incarnation == 7", true},
      {"weights.engine == e1", false},
      {"engine == w1 or engine == w2 and engine == w3", true},
      {"(engine == w1 or engine == w2) and engine == w3", false},
  };
  for (const auto& row : rows) BOOST_TEST(holds(row.text, signal()) == row.expected, row.text);
}

BOOST_AUTO_TEST_CASE(conditions_on_rows_hold_for_one_of_them_and_know_names) {
  const struct {
    const char* text;
    bool expected;
  } rows[] = {
      {"weights.engine == e2", true},
      {"weights.engine == 1", true},
      {"weights.engine == e3", false},
      {"weights.engine != e3", true},
      {"weights.engine != e2", false},
      {"weights.weight > 0.7", true},
      {"weights.weight > 0.8", false},
      {"weights == 2", true},
      {"prices", false},
      {"version == 3@o1.17", true},
      {"version.term.counter == 3", true},
      {"version.sequence > 16", true},
      {"kind == optimal", true},
  };
  for (const auto& row : rows) BOOST_TEST(holds(row.text, snapshot()) == row.expected, row.text);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_refused_with_its_place) {
  const struct {
    const char* text;
    const char* error;
  } rows[] = {
      {"", "--where, column 1: a field is expected; for example: waiting > 4 and scrape == ok"},
      {"running >", "--where, column 10: a value is expected; for example: waiting > 4 and scrape == ok"},
      {"running > many",
       "--where, column 15: 'many' is no number to compare with; for example: waiting > 4 and scrape == ok"},
      {"(running > 1", "--where, column 13: a ')' is missing; for example: waiting > 4 and scrape == ok"},
      {"running > 1 )", "--where, column 13: ')' is too much; for example: waiting > 4 and scrape == ok"},
      {"runing > 1", "--where: no message that is shown has a field 'runing'; is 'running' meant?"},
      {"weights.nothing == 1",
       "--where: no message that is shown has a field 'weights.nothing'; docs/messages.md lists them"},
      {"detail == \"open",
       "--where, column 11: a value is expected; for example: waiting > 4 and scrape == ok"},
  };
  for (const auto& row : rows) {
    const auto expression = Expression::parse(row.text, all_types());
    BOOST_TEST(error_of(expression) == row.error, row.text);
  }
  const std::string deep(4000, '(');
  BOOST_TEST(!Expression::parse(deep, all_types()).has_value());
  const auto signals_only = Expression::parse("weights.weight > 1", {schema::find_info("engine_signal")});
  BOOST_TEST(!signals_only.has_value());
}
