// Planning for less at once, for more only when there was room for it several times in a row.
#include <boost/test/unit_test.hpp>

#include "actors/global_optimizer/machine/demand_level.hpp"

using signalbox::global_optimizer::DemandLevel;
using signalbox::global_optimizer::PlannedFor;

namespace {

/// One period: there is room for plans for `most_room` or less. What the published plan was made for.
PlannedFor publish(DemandLevel& level, PlannedFor most_room, bool in_time = true) {
  for (;;) {
    const PlannedFor tried = level.next();
    if (level.take(tried >= most_room, in_time)) return tried;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(demand_level)

BOOST_AUTO_TEST_CASE(less_is_planned_for_within_the_same_period) {
  DemandLevel level;
  BOOST_TEST((publish(level, PlannedFor::most) == PlannedFor::most));
  BOOST_TEST((publish(level, PlannedFor::expected) == PlannedFor::expected));
  BOOST_TEST((publish(level, PlannedFor::sure) == PlannedFor::sure));
}

BOOST_AUTO_TEST_CASE(more_is_planned_for_after_it_had_room_five_times_in_a_row) {
  DemandLevel level;
  publish(level, PlannedFor::sure);
  for (int i = 1; i < DemandLevel::fits_wanted; ++i)
    BOOST_TEST((publish(level, PlannedFor::most) == PlannedFor::sure));
  BOOST_TEST((publish(level, PlannedFor::most) == PlannedFor::expected));
  for (int i = 1; i < DemandLevel::fits_wanted; ++i)
    BOOST_TEST((publish(level, PlannedFor::most) == PlannedFor::expected));
  BOOST_TEST((publish(level, PlannedFor::most) == PlannedFor::most));
}

BOOST_AUTO_TEST_CASE(what_just_fits_now_and_then_moves_nothing) {
  DemandLevel level;
  publish(level, PlannedFor::expected);
  for (int i = 1; i <= 100; ++i)
    BOOST_TEST((publish(level, i % DemandLevel::fits_wanted == 0 ? PlannedFor::expected : PlannedFor::most) ==
                PlannedFor::expected));
}

BOOST_AUTO_TEST_CASE(without_time_for_a_second_plan_the_first_is_published) {
  DemandLevel level;
  BOOST_TEST((publish(level, PlannedFor::expected, false) == PlannedFor::most));
  BOOST_TEST((publish(level, PlannedFor::expected, false) == PlannedFor::expected));
  BOOST_TEST((publish(level, PlannedFor::most, false) == PlannedFor::most));
}

BOOST_AUTO_TEST_SUITE_END()
