#include <boost/test/unit_test.hpp>

#include "messages/codec/codec.hpp"
#include "tools/observe/record_text.hpp"

using namespace signalbox;
using namespace signalbox::schema;

namespace {

CandidateRow candidate(std::size_t engine, CandidateFate fate, double network_s, double decode_s) {
  CandidateRow row;
  row.engine = EngineIndex(engine);
  row.fate = fate;
  row.network_s = network_s, row.decode_s = decode_s, row.total_s = network_s + decode_s;
  return row;
}

DecisionRecord record() {
  DecisionRecord out;
  out.decision = "abc-7";
  out.class_name = "chat";
  out.rule = "line 12";
  out.engine = EngineIndex(1u), out.engine_name = EngineName("w1");
  out.status = 200;
  out.took = 250ms;
  out.candidates = {candidate(1, CandidateFate::chosen, 0.0, 0.1),
                    candidate(0, CandidateFate::dearer, 0.3, 0.1),
                    candidate(2, CandidateFate::dearer, 0.05, 0.1), candidate(3, CandidateFate::gone, 0, 0)};
  out.attempts = {AttemptRow{EngineIndex(2u), AttemptEnd::connect_error, 0, 0ms, 0ms, 1ms},
                  AttemptRow{EngineIndex(1u), AttemptEnd::succeeded, 200, 1ms, 20ms, 250ms}};
  return out;
}

std::string text_of(const DecisionRecord& r) {
  return observe::record_as_text(codec::to_json(Message(r)), {"e1", "w1", "w2"}).value();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_sentence_says_who_and_by_how_much) {
  BOOST_TEST(first_line(text_of(record())) ==
             "abc-7 is of class chat (line 12). w1 cost least of 3 candidates: 0.100 s, 0.050 s less than "
             "w2, most of it "
             "network (0.050 s). Answered to the end by w1 in attempt 2, after 0.250 s.");
}

BOOST_AUTO_TEST_CASE(a_refusal_says_why) {
  DecisionRecord r = record();
  r.candidates.clear(), r.attempts.clear();
  r.refused = RefuseReason::no_engine, r.status = 503;
  BOOST_TEST(
      first_line(text_of(r)) ==
      "abc-7 is of class chat (line 12). It was refused with 503: no engine of its class is eligible.");
}

BOOST_AUTO_TEST_CASE(every_engine_is_named_with_its_fate_and_the_fates_are_explained) {
  const std::string text = text_of(record());
  for (const char* word : {"e1", "w2", "engine 3", "gone", "its health verdict is gone", "connect_error"})
    BOOST_TEST(text.find(word) != std::string::npos, word);
}

BOOST_AUTO_TEST_CASE(a_plan_is_named_or_said_to_be_gone) {
  DecisionRecord r = record();
  r.cluster = ClusterName("east");
  r.snapshot.term.counter = 2, r.snapshot.sequence = 5;
  r.candidates[3].weight = 0.25;
  BOOST_TEST(text_of(r).find("is no longer kept") != std::string::npos);
  r.snapshot.term.optimizer = ProcessName("opt");
  const std::string text = text_of(r);
  BOOST_TEST(text.find("is no longer kept") == std::string::npos);
  BOOST_TEST(text.find("2@opt.5") != std::string::npos);
  BOOST_TEST(text.find("0.250        -") !=
             std::string::npos);  // of who was not priced only the weight is known
  const auto plan = observe::plan_of_record(codec::to_json(Message(r))).value();
  BOOST_TEST((plan.cluster == ClusterName("east")));
  BOOST_TEST(plan.class_name == "chat");
  BOOST_TEST(plan.version == "2@opt.5");
  BOOST_TEST(observe::plan_of_record(codec::to_json(Message(record()))).value().version == "");
}

BOOST_AUTO_TEST_CASE(what_is_no_record_is_refused) {
  for (const char* bad : {"", "[1]", "{", "nonsense"})
    BOOST_TEST(!observe::record_as_text(bad, {}).has_value(), bad);
}
