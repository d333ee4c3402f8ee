#include <boost/test/unit_test.hpp>

#include "messages/base/duration_text.hpp"

using namespace signalbox;

BOOST_AUTO_TEST_CASE(durations_are_read_with_their_unit) {
  struct Row {
    const char* text;
    Duration duration;
    const char* written;
  };
  for (const Row& row : {Row{"250ms", 250ms, "250ms"}, Row{"1.5s", 1500ms, "1500ms"},
                         Row{"2min", 120s, "120s"}, Row{"1h", 1h, "3600s"}, Row{"50 us", 50us, "50us"},
                         Row{"0s", 0s, "0s"}, Row{"0.07s", 70ms, "70ms"}}) {
    const auto parsed = parse_duration(row.text);
    BOOST_REQUIRE(parsed.has_value());
    BOOST_TEST((*parsed == row.duration), row.text);
    BOOST_TEST(duration_text(*parsed) == row.written);
  }
  for (const char* bad : {"", "5", "s", "5 sec", "-1s", "1e3s", "nan s", "inf s", "999999h", "1s ", "1  s"})
    BOOST_TEST(!parse_duration(bad).has_value(), bad);
}
