#include <boost/test/unit_test.hpp>

#include "actors/engine_proxy/adapters/exposition.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using signalbox::engine_proxy::Exposition;

BOOST_AUTO_TEST_CASE(lines_are_read) {
  struct Row {
    std::string_view what, text;
    double sum;
  };
  const Row rows[] = {
      {"plain", "x 3\n", 3},
      {"no newline at the end", "x 3", 3},
      {"carriage returns", "x 3\r\nx 4\r\n", 7},
      {"labels", "x{a=\"b\",c=\"d\"} 2.5\n", 2.5},
      {"a brace and a quote within a label", "x{a=\"}\\\"{\"} 2\n", 2},
      {"a time stamp", "x 1 1700000000000\n", 1},
      {"a sign and an exponent", "x +1.5e3\n", 1500},
      {"comments", "# HELP x what\n# TYPE x gauge\n\nx 1\n", 1},
      {"series are summed", "x{e=\"0\"} 1\nxx 9\nx{e=\"1\"} 2\n", 3},
      {"not-a-numbers are left out", "x{e=\"0\"} NaN\nx{e=\"1\"} 2\nx{e=\"2\"} +Inf\n", 2},
  };
  for (const Row& row : rows) BOOST_TEST_CONTEXT(row.what) {
      const auto parsed = Exposition::parse(row.text);
      BOOST_REQUIRE(parsed.has_value());
      BOOST_TEST(parsed->sum("x").value_or(-1) == row.sum);
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_exposition_is_refused_with_its_line) {
  for (const std::string_view text :
       {"x\n", "x{a=\"b\" 3\n", "{\"json\": 1}\n", "x three\n", "<html>\n", "x 1 2\n y{\n"}) {
    const auto parsed = Exposition::parse(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_REQUIRE(!parsed.has_value());
      BOOST_TEST(parsed.error().where.starts_with("line "));
    }
  }
}

BOOST_AUTO_TEST_CASE(size_is_bounded) {
  BOOST_TEST(!Exposition::parse(std::string(engine_proxy::max_exposition_bytes + 1, '\n')).has_value());
  std::string many;
  for (std::size_t i = 0; i <= engine_proxy::max_samples; ++i) many += "x 1\n";
  BOOST_TEST(!Exposition::parse(many).has_value());
}

BOOST_AUTO_TEST_CASE(labels_are_found) {
  const auto parsed = Exposition::parse("i{block_size=\"16\", name=\"a\\\"b\",empty=\"\"} 1\n");
  BOOST_REQUIRE(parsed.has_value());
  const auto sample = parsed->find("i").at(0);
  BOOST_TEST(sample.label("block_size").value() == "16");
  BOOST_TEST(sample.label("name").value() == "a\\\"b");
  BOOST_TEST(sample.label("empty").value() == "");
  BOOST_TEST(!sample.label("size").has_value());
}

BOOST_AUTO_TEST_CASE(random_bytes_are_read_or_refused) {
  Rng rng(7);
  const std::string_view alphabet = "x{}=\"\\, 1.e+\n#_:";
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto n = rng.below(40); n > 0; --n) text += alphabet[rng.below(alphabet.size())];
    if (const auto parsed = Exposition::parse(text)) {
      ++read;
      for (const auto& s : parsed->find("x")) s.label("x");
    }
  }
  BOOST_TEST(read > 100);
}
