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

namespace {

std::vector<Table> wide_table() {
  Table table{"engines", {{"engine"}, {"models", 0, 2}, {"load", 1}, {"detail", 0}, {"price", 2, 1}}, {}};
  table.rows = {
      {cell("e1"), cell("m-large"), cell(3.0), cell("signals 0.2 s old, as it should be"), cell(1.25)},
      {cell("e2"), cell("m-small"), cell(9.0), cell("none"), Cell()},
      {cell("e3"), cell("m-large"), Cell(), cell("late"), cell(0.5)}};
  return {table};
}

std::string first_cells(const std::vector<Table>& tables) {
  std::string out;
  for (const auto& row : tables[0].rows) out += std::get<std::string>(row[0]) + " ";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(where_room_is_short_columns_go_by_rank_then_texts_are_cut) {
  BOOST_TEST(as_text(wide_table(), 60) ==
             "engines\n"
             "engine  load  detail                              price\n"
             "e1       3.0  signals 0.2 s old, as it should be   1.25\n"
             "e2       9.0  none                                    -\n"
             "e3         -  late                                 0.50\n"
             "(no room for models)\n");
  BOOST_TEST(as_text(wide_table(), 40) ==
             "engines\n"
             "engine  load  detail\n"
             "e1       3.0  signals 0.2 s old, as i...\n"
             "e2       9.0  none\n"
             "e3         -  late\n"
             "(no room for models, price)\n");
  BOOST_TEST(as_text(wide_table(), 20).ends_with("(no room for mod...)\n"));
  BOOST_TEST(as_text(wide_table(), 0) == as_text(wide_table(), 400));
}

BOOST_AUTO_TEST_CASE(rows_are_sorted_with_what_is_not_known_last) {
  auto tables = wide_table();
  BOOST_TEST(sort_by(tables, "-load").has_value());
  BOOST_TEST(first_cells(tables) == "e2 e1 e3 ");
  BOOST_TEST(sort_by(tables, "load").has_value());
  BOOST_TEST(first_cells(tables) == "e1 e2 e3 ");
  BOOST_TEST(sort_by(tables, "detail").has_value());
  BOOST_TEST(first_cells(tables) == "e3 e2 e1 ");
  BOOST_TEST(sort_by(tables, "laod").error().text() ==
             "--sort: no column is called 'laod'; did you mean 'load'?");
}

BOOST_AUTO_TEST_CASE(rows_are_kept_by_text_or_by_a_column) {
  const auto kept = [](std::string_view condition) {
    auto tables = wide_table();
    BOOST_TEST_REQUIRE(keep_rows(tables, condition).has_value());
    return first_cells(tables);
  };
  BOOST_TEST(kept("large") == "e1 e3 ");
  BOOST_TEST(kept("models=m-small") == "e2 ");
  BOOST_TEST(kept("models!=m-small") == "e1 e3 ");
  BOOST_TEST(kept("models=m") == "");
  BOOST_TEST(kept("load=9.0") == "e2 ");
  auto tables = wide_table();
  BOOST_TEST(!keep_rows(tables, "nothing=1").has_value());
}
