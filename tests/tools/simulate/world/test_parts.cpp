#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>

#include "messages/base/rng.hpp"
#include "tools/simulate/world/content.hpp"
#include "tools/simulate/world/event_queue.hpp"
#include "tools/simulate/world/settling.hpp"

using namespace signalbox;
using namespace signalbox::simulate;

namespace {
Instant at_s(double s) { return instant_at(from_seconds(s)); }
}  // namespace

BOOST_AUTO_TEST_CASE(events_happen_in_order_of_time_then_of_asking) {
  EventQueue queue;
  std::string order;
  queue.at(at_s(2), [&] { order += 'c'; });
  queue.at(at_s(1), [&] {
    order += 'a';
    queue.in(0s, [&] { order += 'b'; });
    queue.at(at_s(0), [&] { order += '!'; });  // the past is now
  });
  queue.at(at_s(2), [&] { order += 'd'; });
  queue.at(at_s(4), [&] { order += 'x'; });
  queue.run_until(at_s(3));
  BOOST_TEST(order == "ab!cd");
  BOOST_TEST((queue.now() == at_s(3) && queue.pending() == 1));
}

BOOST_AUTO_TEST_CASE(an_alarm_may_change_its_time) {
  EventQueue queue;
  std::vector<double> rang;
  Alarm alarm(queue, [&] { rang.push_back(to_seconds(queue.now() - at_s(0))); });
  const auto run = [&](double s) { queue.run_until(at_s(s)); };
  alarm.set(at_s(5));
  alarm.set(at_s(2));
  run(3);
  alarm.set(at_s(4));
  alarm.set(at_s(6));  // later than first wished
  run(5);
  BOOST_TEST(rang.size() == 1u);
  run(7);
  alarm.set(at_s(8));
  alarm.set(end_of_time);
  run(9);
  alarm.set(at_s(10));
  run(11);
  BOOST_TEST((rang == std::vector<double>{2, 6, 10}));
}

BOOST_AUTO_TEST_CASE(an_alarm_that_is_gone_does_not_ring) {
  EventQueue queue;
  int rang = 0;
  auto alarm = std::make_unique<Alarm>(queue, [&] { ++rang; });
  alarm->set(at_s(1));
  alarm.reset();
  queue.run_until(at_s(2));
  BOOST_TEST(rang == 0);
}

BOOST_AUTO_TEST_CASE(block_hashes_agree_exactly_where_contents_do) {
  const Content one{{7, 100}, {1, 60}}, two{{7, 100}, {2, 60}}, split{{7, 100}, {1, 30}};
  for (const std::uint32_t block : {16u, 25u, 32u, 256u}) {
    const auto a = block_hashes(one, block, 0), b = block_hashes(two, block, 0),
               c = block_hashes(split, block, 0);
    BOOST_TEST(a.size() == 160 / block);
    const auto common = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    BOOST_TEST(common == 100 / block);
    BOOST_TEST(std::equal(c.begin(), c.end(), a.begin()));
    BOOST_TEST((a.empty() || block_hashes(one, block, 1).front() != a.front()));
  }
  BOOST_TEST(block_hashes(one, 16, 0, 3).size() == 3u);
}

namespace {
std::vector<Sample> series(std::initializer_list<double> values) {
  std::vector<Sample> out;
  for (const double v : values) out.push_back({at_s(static_cast<double>(out.size())), v});
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(reversals_are_turns_beyond_the_dead_band) {
  const struct {
    const char* name;
    std::vector<Sample> samples;
    std::uint32_t expected;
  } rows[] = {
      {"nothing", {}, 0},
      {"flat", series({1, 1, 1}), 0},
      {"rising", series({0, 1, 2, 3}), 0},
      {"one turn", series({0, 1, 0}), 1},
      {"noise within the band", series({0, 1, 0.95, 1.02, 0.97, 1.5}), 0},
      {"a slow turn", series({0, 1, 0.95, 0.9, 0.85, 0.8}), 1},
      {"a saw", series({0, 1, 0, 1, 0, 1}), 4},
  };
  for (const auto& row : rows) BOOST_TEST(count_reversals(row.samples, 0.1) == row.expected, row.name);
}

BOOST_AUTO_TEST_CASE(a_step_s_answer) {
  const auto clean = answer_to_step(series({1, 1, 1, 0.5, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2}), at_s(3), 0.02);
  BOOST_TEST((clean.before == 1 && clean.reversals == 0));
  BOOST_TEST(clean.final == 0.2, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(clean.overshoot() == 0.0, boost::test_tools::tolerance(1e-9));
  BOOST_REQUIRE(clean.settled_after.has_value());
  BOOST_TEST((*clean.settled_after == 1s));

  const auto over = answer_to_step(series({1, 1, 0.6, 0.0, 0.4, 0.2, 0.2, 0.2, 0.2, 0.2}), at_s(2), 0.05);
  BOOST_TEST(over.overshoot() == 0.25, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(over.reversals == 2u);
  BOOST_TEST((over.settled_after == 3s));

  const auto never = answer_to_step(series({1, 0.2, 0.8, 0.2, 0.8, 0.2, 0.8, 0.2, 0.8}), at_s(1), 0.05);
  BOOST_TEST(!never.settled_after.has_value());
  BOOST_TEST(never.reversals == 7u - 1u);
}
