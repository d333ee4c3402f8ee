#include <boost/test/unit_test.hpp>

#include "messages/base/json_text.hpp"

using namespace signalbox;

BOOST_AUTO_TEST_CASE(json_strings_are_quoted_and_escaped) {
  struct Row {
    std::string_view text, json;
  };
  const Row rows[] = {
      {"", R"("")"},
      {"a\"b\\c\nd\x7f", R"("a\"b\\c\u000ad\u007f")"},
      {"h\xc3\xa9llo \xe4\xb8\x96 \xf0\x9f\x9a\x82", "\"h\xc3\xa9llo \xe4\xb8\x96 \xf0\x9f\x9a\x82\""},
      {"a\xff\xc3", R"("a\ufffd\ufffd")"},
      {"\xc0\xaf", R"("\ufffd\ufffd")"},                      // overlong
      {"\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},            // a surrogate
      {"\xf4\x90\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"},  // past U+10FFFF
  };
  for (const Row& row : rows) BOOST_TEST(json_string(row.text) == row.json);
}

BOOST_AUTO_TEST_CASE(a_code_point_is_as_long_as_it_says_or_not_one) {
  BOOST_TEST(utf8_length("") == 0u);
  BOOST_TEST(utf8_length("ab") == 1u);
  BOOST_TEST(utf8_length("\xc3\xa9x") == 2u);
  BOOST_TEST(utf8_length("\xe4\xb8\x96") == 3u);
  BOOST_TEST(utf8_length("\xf0\x9f\x9a\x82") == 4u);
  BOOST_TEST(utf8_length("\xf0\x9f\x9a") == 0u);
}
