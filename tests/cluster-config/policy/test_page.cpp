// docs/policy.md says what is so: its blocks are one policy, and its table of numbers is generated.
#include <boost/test/unit_test.hpp>

#include "cluster-config/policy/compile.hpp"
#include "cluster-config/policy/knobs.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::policy;

namespace {

const std::filesystem::path page = tests::source_path("docs/policy.md");

/// The blocks fenced as `policy`, one after the other.
std::string blocks(const std::string& text) {
  constexpr std::string_view open = "```policy\n", close = "```\n";
  std::string out;
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    const std::size_t end = text.find(close, at);
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_blocks_of_the_page_are_one_policy) {
  const std::string text = blocks(tests::read_file(page));
  const Compilation compiled = compile(text);
  BOOST_REQUIRE_MESSAGE(compiled.policy.has_value(), render(compiled.errors, text, "docs/policy.md"));
  BOOST_TEST(compiled.policy->classes.size() == 5u);
}

BOOST_AUTO_TEST_CASE(the_numbers_of_the_page_are_the_table) {
  constexpr std::string_view begin = "<!-- numbers -->\n", end = "<!-- end of numbers -->\n";
  const std::string text = tests::read_file(page);
  const std::size_t from = text.find(begin) + begin.size();
  tests::check_golden(page, text.substr(0, from) + numbers_as_markdown() + text.substr(text.find(end)));
}
