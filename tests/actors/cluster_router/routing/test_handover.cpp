// The two places where threads meet.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>

#include "actors/cluster_router/routing/handover.hpp"

namespace signalbox::routing::test {

BOOST_AUTO_TEST_CASE(a_queue_keeps_order_and_refuses_when_full) {
  SpscQueue<int> queue(3);
  BOOST_TEST(queue.capacity() == 4u);
  for (int i = 0; i < 4; ++i) BOOST_TEST(queue.push(int{i}));
  BOOST_TEST(!queue.push(9));
  for (int i = 0; i < 4; ++i) BOOST_TEST(*queue.pop() == i);
  BOOST_TEST(!queue.pop().has_value());
}

BOOST_AUTO_TEST_CASE(a_queue_between_two_threads_loses_and_repeats_nothing) {
  constexpr std::uint64_t items = 200'000;
  SpscQueue<std::unique_ptr<std::uint64_t>> queue(64);
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= items; ++i) {
      auto item = std::make_unique<std::uint64_t>(i);
      while (!queue.push(std::move(item))) std::this_thread::yield();
    }
  });
  std::uint64_t wanted = 1;
  bool in_order = true;
  while (wanted <= items) {
    const auto item = queue.pop();
    if (!item) {
      std::this_thread::yield();
      continue;
    }
    in_order &= **item == wanted++;
  }
  writer.join();
  BOOST_TEST(in_order);
  BOOST_TEST(!queue.pop().has_value());
}

BOOST_AUTO_TEST_CASE(a_slot_hands_over_the_latest_value_once) {
  LatestSlot<std::shared_ptr<int>> slot;
  BOOST_TEST(!slot.fetch().has_value());
  slot.publish(std::make_shared<int>(1));
  slot.publish(std::make_shared<int>(2));
  BOOST_TEST(**slot.fetch() == 2);
  BOOST_TEST(!slot.fetch().has_value());
}

BOOST_AUTO_TEST_CASE(a_slot_between_two_threads_never_goes_back_and_ends_with_the_last) {
  constexpr int values = 100'000;
  LatestSlot<std::shared_ptr<const int>> slot;
  std::thread writer([&] {
    for (int i = 1; i <= values; ++i) slot.publish(std::make_shared<const int>(i));
  });
  int last = 0;
  bool forward = true;
  while (last < values) {
    if (const auto value = slot.fetch()) {
      forward &= **value > last;
      last = **value;
    } else {
      std::this_thread::yield();
    }
  }
  writer.join();
  BOOST_TEST(forward);
}

}  // namespace signalbox::routing::test
