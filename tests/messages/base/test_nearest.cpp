#include <array>
#include <boost/test/unit_test.hpp>

#include "messages/base/nearest.hpp"

using namespace signalbox;

BOOST_AUTO_TEST_CASE(edit_distance_counts_single_mistakes) {
  struct Row {
    const char* a;
    const char* b;
    std::size_t distance;
  };
  for (const Row& row : {Row{"", "", 0}, Row{"abc", "", 3}, Row{"cluster", "clutser", 1},
                         Row{"rack", "tack", 1}, Row{"engine", "engines", 1}, Row{"kitten", "sitting", 3}}) {
    BOOST_TEST(edit_distance(row.a, row.b) == row.distance, row.a << " " << row.b);
    BOOST_TEST(edit_distance(row.b, row.a) == row.distance, row.b << " " << row.a);
  }
}

BOOST_AUTO_TEST_CASE(a_hint_names_the_nearest_or_lists_all) {
  constexpr std::array<std::string_view, 3> known{"cluster", "engine", "rack"};
  BOOST_TEST(nearest("enigne", known) == "engine");
  BOOST_TEST(nearest("weather", known) == "");
  BOOST_TEST(name_hint("clustre", known) == "did you mean 'cluster'?");
  BOOST_TEST(name_hint("weather", known) == "known: cluster, engine, rack");
  BOOST_TEST(name_hint("weather", {}) == "");
}
