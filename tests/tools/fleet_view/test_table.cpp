#include <boost/test/unit_test.hpp>

#include "tools/fleet_view/table.hpp"

using namespace signalbox::fleet_view;

namespace {

std::vector<Table> two_tables() {
  return {
      {"engines",
       {{"engine"}, {"weight", 2}, {"waiting"}, {"ready"}},
       {{cell("e1"), cell(0.125), count(3), flag(true)}, {cell("engine-2"), cell(1.0), Cell(), flag(false)}}},
      {"alerts", {{"alert"}}, {}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_has_numbers_to_the_right_and_says_when_there_is_nothing) {
  BOOST_CHECK_EQUAL(as_text(two_tables()),
                    "engines\n"
                    "engine    weight  waiting  ready\n"
                    "e1          0.12        3  yes\n"
                    "engine-2    1.00        -  no\n"
                    "\n"
                    "alerts\n"
                    "none\n");
}

BOOST_AUTO_TEST_CASE(json_has_whole_numbers_and_null_for_what_is_not_known) {
  BOOST_CHECK_EQUAL(
      as_json(two_tables()),
      "{\"engines\": [{\"engine\": \"e1\", \"weight\": 0.125, \"waiting\": 3, \"ready\": true}, "
      "{\"engine\": \"engine-2\", \"weight\": 1, \"waiting\": null, \"ready\": false}], \"alerts\": []}\n");
}

BOOST_AUTO_TEST_CASE(json_strings_are_escaped) {
  BOOST_CHECK_EQUAL(json_string("a\"b\\c\nd"), "\"a\\\"b\\\\c\\u000ad\"");
}
