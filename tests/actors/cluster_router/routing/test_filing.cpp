// What a dispatcher hands out for the ring file, and what can be told from it.
#include <boost/test/unit_test.hpp>
#include <map>

#include "actors/cluster_router/routing/filed_record.hpp"
#include "messages/base/rng.hpp"
#include "messages/codec/codec.hpp"
#include "messages/schema/visit.hpp"
#include "tests/actors/cluster_router/routing/fleet.hpp"

namespace signalbox::routing::test {

using schema::AttemptEnd;

namespace {

struct Filing {
  explicit Filing(std::size_t records = 64, std::size_t waiting = 1024) {
    fleet.engines(4).request_class("t", Criticality::standard);
    fleet.weights(ClassIndex(0), {0.4, 0.3, 0.2, 0.1});
    DispatcherOptions o = options();
    o.file_records = true, o.records = records, o.filed_waiting = waiting;
    dispatcher.emplace(o);
    dispatcher->adopt(fleet.view(), at(0));
    const auto view = fleet.view();
    names = parse_names(names_text(view->cluster, *view->policy, *view->table, 1 << 16));
  }
  std::vector<FiledRecord> take() {
    std::vector<FiledRecord> out;
    dispatcher->filed()->take(out);
    return out;
  }
  Begun begin(double now, std::string_view tenant = "t") {
    return dispatcher->begin(request(tenant), at(now));
  }
  void answer(const Begun& begun, double now) {
    dispatcher->head(begun.ticket, 200, {}, at(now));
    dispatcher->first_byte(begun.ticket, at(now));
    dispatcher->finished(begun.ticket, AttemptEnd::succeeded, {100, 0, 10}, at(now + 0.1));
  }

  Fleet fleet;
  std::optional<Dispatcher> dispatcher;
  FiledNames names;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_filed_record_says_what_the_whole_one_says) {
  Filing f;
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    const Begun begun = f.begin(i);
    BOOST_REQUIRE(std::holds_alternative<Forward>(begun.verdict));
    if (rng.chance(0.3)) f.dispatcher->failed(begun.ticket, AttemptEnd::connect_error, at(i + 0.01));
    f.answer(begun, i + 0.05);
    const auto filed = f.take();
    BOOST_REQUIRE(filed.size() == 1u);
    const auto whole = f.dispatcher->record(begun.decision, at(i + 1));
    BOOST_REQUIRE(whole.has_value());
    const auto brief = as_message(filed[0], &f.names);
    BOOST_TEST(brief.decision == whole->decision);
    BOOST_TEST(brief.class_name == whole->class_name);
    BOOST_TEST(brief.engine_name.str() == whole->engine_name.str());
    BOOST_TEST(brief.rule == whole->rule);
    BOOST_TEST(brief.seed == whole->seed);
    BOOST_TEST(brief.status == whole->status);
    BOOST_TEST((brief.took == whole->took && brief.table == whole->table && brief.policy == whole->policy));
    BOOST_TEST(brief.snapshot.sequence == whole->snapshot.sequence);
    BOOST_TEST(to_seconds(brief.snapshot_age) == to_seconds(whole->snapshot_age),
               boost::test_tools::tolerance(0.005));
    BOOST_REQUIRE(brief.attempts.size() == whole->attempts.size());
    for (std::size_t a = 0; a < brief.attempts.size(); ++a)
      BOOST_TEST((brief.attempts[a].engine == whole->attempts[a].engine &&
                  brief.attempts[a].end == whole->attempts[a].end &&
                  brief.attempts[a].ended == whole->attempts[a].ended));
    BOOST_REQUIRE(!brief.candidates.empty());
    BOOST_REQUIRE(brief.candidates.size() <= 2u);
    for (std::size_t c = 0; c < brief.candidates.size(); ++c) {
      BOOST_TEST((brief.candidates[c].engine == whole->candidates[c].engine));
      BOOST_TEST((brief.candidates[c].fate == whole->candidates[c].fate));
      BOOST_TEST(brief.candidates[c].total_s == whole->candidates[c].total_s,
                 boost::test_tools::tolerance(0.005));
    }
    BOOST_TEST(schema::check_fields(brief).has_value());
    BOOST_TEST(
        codec::decode(schema::DecisionRecord::info.kind, codec::encode(schema::Message(brief))).has_value());
  }
}

BOOST_AUTO_TEST_CASE(refusals_and_clients_that_left_are_filed) {
  Filing f;
  f.begin(1, "nobody");
  const Begun left = f.begin(2);
  f.dispatcher->client_left(left.ticket, at(3));
  const auto filed = f.take();
  BOOST_REQUIRE(filed.size() == 2u);
  const auto refused = as_message(filed[0], &f.names);
  BOOST_TEST(name_of(refused.refused) == "policy_reject");
  BOOST_TEST(refused.status == 403);
  BOOST_TEST(as_message(filed[1], &f.names).status == 499);
}

BOOST_AUTO_TEST_CASE(what_is_open_for_long_is_filed_before_it_ends_and_outlives_its_place_in_memory) {
  Filing f(16);
  const Begun lasting = f.begin(1);
  f.dispatcher->drain(at(1.25));
  BOOST_TEST(f.take().empty());
  f.dispatcher->drain(at(2));
  auto filed = f.take();
  BOOST_REQUIRE(filed.size() == 1u);
  BOOST_TEST(filed[0].took_us == 0u);
  BOOST_TEST(as_message(filed[0], &f.names).candidates.size() > 0u);
  f.dispatcher->drain(at(3));
  BOOST_TEST(f.take().empty());  // once
  for (int i = 0; i < 40; ++i) f.answer(f.begin(4), 4);
  BOOST_TEST(!f.dispatcher->record(lasting.decision, at(5)).has_value());
  f.take();
  f.answer(lasting, 9);
  filed = f.take();
  BOOST_REQUIRE(filed.size() == 1u);
  const auto told = as_message(filed[0], &f.names);
  BOOST_TEST(told.decision == to_string(lasting.decision));
  BOOST_TEST((told.took == 8100ms));
  BOOST_TEST(told.candidates.size() > 0u);
  BOOST_TEST(name_of(told.attempts.at(0).end) == "succeeded");
}

BOOST_AUTO_TEST_CASE(a_queue_that_nobody_empties_drops_and_counts) {
  Filing f(64, 8);
  for (int i = 0; i < 20; ++i) f.answer(f.begin(i), i);
  BOOST_TEST(f.take().size() == 8u);
  BOOST_TEST(f.dispatcher->filed()->dropped() == 12u);
  for (int i = 0; i < 5; ++i) f.answer(f.begin(100), 100);
  BOOST_TEST(f.take().size() == 5u);
}

BOOST_AUTO_TEST_CASE(a_record_that_was_changed_is_not_sound) {
  Rng rng(9);
  Filing f;
  f.answer(f.begin(1), 1);
  FiledRecord record = f.take().at(0);
  seal(record);
  BOOST_TEST(is_sound(record));
  BOOST_TEST(!is_sound(FiledRecord{}));
  for (int i = 0; i < 1000; ++i) {
    FiledRecord torn = record;
    reinterpret_cast<unsigned char*>(&torn)[rng.below(sizeof torn)] ^=
        static_cast<unsigned char>(1 + rng.below(255));
    BOOST_TEST(!is_sound(torn));
  }
}

BOOST_AUTO_TEST_CASE(names_that_do_not_fit_are_left_out_whole) {
  Fleet fleet;
  fleet.engines(1000).request_class("t", Criticality::standard);
  const auto view = fleet.view();
  const std::string text = names_text(view->cluster, *view->policy, *view->table, 2000);
  BOOST_TEST(text.size() <= 2000u);
  BOOST_TEST(text.back() == '\n');
  const FiledNames names = parse_names(text);
  BOOST_TEST(names.classes.size() == 1u);
  BOOST_TEST(names.engines.size() > 50u);
  BOOST_TEST(names.engines.back() == fmt::format("e{}", names.engines.size() - 1));
}

}  // namespace signalbox::routing::test
