#include "actors/global_optimizer/machine/election.hpp"

#include <boost/test/unit_test.hpp>

#include "actors/kit/fleet/terms.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;

namespace {

Instant at(double s) { return instant_at(from_seconds(s)); }

Election election(std::string_view id, std::uint64_t kept = 0, std::uint64_t epoch = 1) {
  return Election({ProcessName(id), epoch, kept, 1s, 1s}, at(0));
}

schema::Delivery from(std::string_view source, schema::Message message, Duration age = 0s) {
  schema::Delivery out;
  out.envelope.source = ProcessName(source);
  out.age = age;
  out.message = std::move(message);
  return out;
}

schema::Delivery alive(std::string_view id, std::uint64_t counter, std::uint64_t sequence,
                       bool holding = false) {
  return from(id, schema::KeepAlive{{{counter, ProcessName(id)}, sequence}, {}, holding, 1});
}

schema::Delivery beat(std::string_view id, Term term = {}, bool leads = false, Duration uptime = 1h) {
  schema::Beat out;
  out.role = Role::global_optimizer;
  out.id = ProcessName(id);
  out.term = term;
  out.leads = leads;
  out.uptime = uptime;
  return from(id, out);
}

}  // namespace

BOOST_AUTO_TEST_CASE(alone_it_stands_after_the_silence) {
  Election e = election("a");
  BOOST_TEST(!e.should_stand(at(0.99)));
  BOOST_TEST(e.should_stand(at(1)));
  BOOST_TEST((e.stand(at(1)) == Term{1, ProcessName("a")}));
  BOOST_TEST(e.leads());
}

BOOST_AUTO_TEST_CASE(the_lowest_living_id_stands_first_and_a_silent_one_is_not_waited_for_long) {
  Election b = election("b"), c = election("c");
  for (Election* e : {&b, &c})
    for (const char* id : {"a", "b", "c"}) e->hear(beat(id), at(0.5));
  BOOST_TEST(!b.should_stand(at(1.5)));  // a's turn
  BOOST_TEST(b.should_stand(at(2)));
  BOOST_TEST(!c.should_stand(at(2)));
}

BOOST_AUTO_TEST_CASE(leadership_is_sticky_a_returning_lower_id_does_not_pre_empt) {
  Election a = election("a");
  for (double t = 0.2; t < 8; t += 0.5) {
    a.hear(alive("b", 7, static_cast<std::uint64_t>(t * 2)), at(t));
    BOOST_TEST(!a.should_stand(at(t + 0.4)));
  }
  BOOST_TEST((a.term() == Term{7, ProcessName("b")}));
}

BOOST_AUTO_TEST_CASE(the_highest_term_is_learnt_before_standing) {
  Election a = election("a", 3);
  a.hear(beat("b", {9, ProcessName("b")}), at(0.1));
  schema::SnapshotReceipt receipt;
  receipt.in_force = {{12, ProcessName("c")}, 4};
  a.hear(from("router", receipt), at(0.2));
  BOOST_TEST(a.stand(at(5)).counter == 13);
}

BOOST_AUTO_TEST_CASE(a_higher_term_makes_a_leader_step_down_equal_counters_go_by_id) {
  Election a = election("a");
  a.stand(at(1));
  BOOST_TEST(!a.hear(alive("0", 1, 1), at(1.1)));  // the lower id of the same counter
  BOOST_TEST(a.leads());
  BOOST_TEST(a.hear(alive("b", 1, 1), at(1.2)));
  BOOST_TEST(!a.leads());
  BOOST_TEST(!a.should_stand(at(2.1)));
  BOOST_TEST(a.should_stand(at(2.2)));
}

BOOST_AUTO_TEST_CASE(a_jump_of_more_than_a_thousand_is_not_believed_but_an_epoch_is) {
  Election a = election("a");
  a.stand(at(1));
  BOOST_TEST(!a.hear(alive("b", 1005, 1), at(1.1)));
  BOOST_TEST(!a.hear(alive("b", kit::first_counter(2) + 1, 1), at(1.1)));
  BOOST_TEST(a.leads());
  Election raised = election("a", 500, 2);
  BOOST_TEST(raised.stand(at(1)).counter == kit::first_counter(2) + 1);
}

BOOST_AUTO_TEST_CASE(a_leader_that_beats_but_plans_nothing_is_replaced_one_that_holds_is_not) {
  Election stuck = election("b"), holds = election("b");
  for (double t = 0.2; t < 3.9; t += 0.2) {
    stuck.hear(alive("a", 1, 1), at(t));
    holds.hear(alive("a", 1, 1, true), at(t));
    BOOST_TEST(!stuck.should_stand(at(t)));
  }
  for (double t = 3.9; t < 6; t += 0.2)
    stuck.hear(alive("a", 1, 1), at(t)), holds.hear(alive("a", 1, 1, true), at(t));
  BOOST_TEST(stuck.should_stand(at(6)));
  BOOST_TEST(!holds.should_stand(at(6)));
}

BOOST_AUTO_TEST_CASE(while_receipts_show_a_living_leader_a_deaf_standby_stays_down) {
  Election b = election("b");
  b.hear(alive("a", 1, 1), at(0.1));
  for (int i = 2; i < 9; ++i) {
    schema::SnapshotReceipt receipt;
    receipt.in_force = {{1, ProcessName("a")}, static_cast<std::uint64_t>(i)};
    b.hear(from("router", receipt), at(0.5 * i));
    BOOST_TEST(!b.should_stand(at(0.5 * i + 0.4)));
  }
  BOOST_TEST(b.should_stand(at(5.1)));  // the receipts stopped
}

BOOST_AUTO_TEST_CASE(who_resigns_rests) {
  Election a = election("a");
  a.stand(at(1));
  a.resign(at(2), 5s);
  BOOST_TEST(!a.leads());
  BOOST_TEST(!a.should_stand(at(6.9)));
  BOOST_TEST(a.should_stand(at(7)));
}

BOOST_AUTO_TEST_CASE(a_leaders_beats_count_as_hearing_it) {
  Election b = election("b");
  b.hear(alive("a", 1, 1), at(0.1));
  for (double t = 0.2; t < 3.5; t += 0.2) {
    b.hear(beat("a", {1, ProcessName("a")}, true), at(t));
    BOOST_TEST(!b.should_stand(at(t + 0.5)));
  }
}

BOOST_AUTO_TEST_CASE(a_leader_that_was_started_anew_is_replaced_at_once_by_the_warm_standby) {
  Election b = election("b");
  b.hear(alive("a", 1, 1), at(5));
  BOOST_TEST(!b.should_stand(at(5.3)));
  b.hear(beat("a", {1, ProcessName("a")}, false, 100ms), at(5.3));
  BOOST_TEST(b.should_stand(at(5.3)));
  Election a = election("a", 1);  // it waits, and hears its successor
  BOOST_TEST(!a.should_stand(at(0.5)));
  a.hear(alive("b", 2, 1), at(0.6));
  BOOST_TEST(!a.should_stand(at(1.5)));
}

BOOST_AUTO_TEST_CASE(two_that_start_together_agree_on_the_lower_id) {
  Election a = election("a"), b = election("b");
  for (double t = 0.1; t < 1; t += 0.2) {
    a.hear(beat("b", {}, false, from_seconds(t)), at(t));
    b.hear(beat("a", {}, false, from_seconds(t)), at(t));
  }
  BOOST_TEST(a.should_stand(at(1)));
  BOOST_TEST(!b.should_stand(at(1)));
}
