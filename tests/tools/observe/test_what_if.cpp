#include <boost/test/unit_test.hpp>

#include "messages/codec/codec.hpp"
#include "tests/support/results.hpp"
#include "tools/observe/what_if.hpp"

using namespace signalbox;
using namespace signalbox::observe;
using schema::CandidateFate;
using tests::error_of;

namespace {

schema::CandidateRow row(unsigned engine, CandidateFate fate, double network, double decode) {
  schema::CandidateRow out;
  out.engine = EngineIndex(engine), out.fate = fate;
  out.network_s = network, out.decode_s = decode, out.total_s = network + decode;
  return out;
}

/// e1 was chosen: 0.1 s against 0.12 s on e0; e2 would be cheapest but its memory is full; e3 was not drawn; e4 is gone.
std::string record() {
  schema::DecisionRecord out;
  out.decision = "d-1";
  out.candidates = {row(1, CandidateFate::chosen, 0.0, 0.1), row(0, CandidateFate::dearer, 0.06, 0.06),
                    row(2, CandidateFate::kv_full, 0.0, 0.05), row(3, CandidateFate::not_drawn, 0, 0),
                    row(4, CandidateFate::gone, 0, 0)};
  return codec::to_json(schema::Message(out));
}

Result<WhatIfAnswer> ask(std::initializer_list<std::string_view> changes) {
  std::vector<WhatIf> parsed;
  for (const auto text : changes) parsed.push_back(parse_what_if(text).value());
  return answer_what_if(record(), std::nullopt, {"e0", "e1", "e2", "e3", "e4"}, parsed);
}

}  // namespace

BOOST_AUTO_TEST_CASE(changes_are_read_or_refused) {
  const auto slow = parse_what_if("slow=e1:2.5x");
  BOOST_TEST_REQUIRE(error_of(slow) == "");
  BOOST_TEST(slow->engine == "e1");
  BOOST_TEST(slow->factor == 2.5);
  BOOST_TEST(parse_what_if("slow=2")->factor == 2);
  BOOST_TEST(parse_what_if("without=w1")->engine == "w1");
  for (const char* bad :
       {"", "slow", "slow=", "slow=x", "slow=-1x", "slow=0", "slow=1e9", "engine=", "faster=2x"})
    BOOST_TEST(!parse_what_if(bad).has_value(), bad);
}

BOOST_AUTO_TEST_CASE(recorded_candidates_are_compared_again) {
  const struct {
    std::initializer_list<std::string_view> changes;
    const char* after;
    const char* sentence;
  } rows[] = {
      {{"without=e1"}, "e0", "Without e1, e0 would have been chosen at 0.1200 s; e1 was, at 0.1000 s."},
      {{"without=e0"}, "e1", "Without e0, e1 would still have been chosen, at 0.1000 s (it cost 0.1000 s)."},
      {{"slow=1.1x"},
       "e1",
       "With e1 1.1 times as slow, e1 would still have been chosen, at 0.1100 s (it cost 0.1000 s)."},
      {{"slow=1.3x"},
       "e0",
       "With e1 1.3 times as slow, e0 would have been chosen at 0.1200 s; e1 was, at 0.1000 s."},
      {{"slow=e0:0.1x"},
       "e0",
       "With e0 0.1 times as slow, e0 would have been chosen at 0.0660 s; e1 was, at 0.1000 s."},
      {{"without=e1", "without=e0"},
       "e2",
       "Without e1 and without e0, e2 would have been chosen at 0.0500 s; e1 was, at 0.1000 s."},
      {{"engine=e0"},
       "e0",
       "e0 would have cost 0.1200 s, 0.0200 s more than e1, most of it network (0.0600 s)."},
      {{"engine=e1"}, "e1", "e1 would have cost 0.1000 s: it is the one that was chosen."},
      {{"engine=e4"}, "e4", "e4 could not have served it: its health verdict is gone."},
  };
  for (const auto& row : rows) {
    const auto answer = ask(row.changes);
    BOOST_TEST_REQUIRE(error_of(answer) == "", row.sentence);
    BOOST_TEST(answer->after == row.after);
    BOOST_TEST(answer->sentence == row.sentence);
    BOOST_TEST(!answer->exact);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_answered_is_refused) {
  BOOST_TEST(error_of(ask({"without=e9"})).find("the fleet has no engine 'e9'") != std::string::npos);
  BOOST_TEST(error_of(ask({"engine=e3"})).find("what it would have cost was not recorded") !=
             std::string::npos);
  BOOST_TEST(error_of(ask({"engine=e0", "without=e1"})).find("engine=E stands alone") != std::string::npos);
  BOOST_TEST(!answer_what_if("nonsense", std::nullopt, {"e0"}, {{}}).has_value());
}

BOOST_AUTO_TEST_CASE(answers_are_text_and_json) {
  const auto answer = ask({"without=e1"}).value();
  BOOST_TEST(as_text(answer).starts_with("Without e1, e0 would have been chosen"));
  BOOST_TEST(
      as_json(answer).starts_with("{\"sentence\": \"Without e1, e0 would have been chosen at 0.1200 s; e1 "
                                  "was, at 0.1000 s.\", \"exact\": false, "
                                  "\"before\": \"e1\", \"after\": \"e0\", \"candidates\": [{"));
}
