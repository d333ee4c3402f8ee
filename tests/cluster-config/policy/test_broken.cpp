#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "cluster-config/policy/compile.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::policy;

// What people read when a policy is wrong: every file of broken/ beside its transcript.
BOOST_AUTO_TEST_CASE(broken_policies_are_refused_with_these_words) {
  std::size_t seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(tests::source_path("tests/cluster-config/policy/broken"))) {
    if (entry.path().extension() != ".policy") continue;
    ++seen;
    const std::string text = tests::read_file(entry.path());
    const std::string file = entry.path().filename().string();
    const Compilation compiled = compile(text);
    BOOST_TEST(!compiled.policy.has_value(), file << " compiles");
    BOOST_TEST(compiled.errors.size() <= max_diagnostics);
    tests::check_golden(std::filesystem::path(entry.path()).replace_extension(".txt"),
                        render(compiled.errors, text, file));
  }
  BOOST_TEST(seen >= 25);
}

BOOST_AUTO_TEST_CASE(one_error_is_shown_with_its_place_and_the_number_of_the_others) {
  const auto refused = compile_text("policy t version 1\nmodels { m }\n", "p.policy");
  BOOST_REQUIRE(!refused.has_value());
  BOOST_TEST(
      refused.error().text() ==
      "p.policy:3:1: there is no 'class' statement (and 1 more); write: class NAME { tenants *  model NAME  "
      "criticality standard  residency any }");
}

BOOST_AUTO_TEST_CASE(a_word_of_any_length_is_quoted_in_part) {
  const Compilation compiled =
      compile("policy p version 1\nmodels { m }\nclass " + std::string(100'000, 'a') +
              " { tenants *  model n  criticality standard  residency any }\notherwise reject 403\n");
  BOOST_REQUIRE(!compiled.errors.empty());
  for (const Diagnostic& error : compiled.errors) BOOST_TEST(error.what.size() <= 403u);
}

BOOST_AUTO_TEST_CASE(an_over_long_policy_is_refused_unread) {
  const Compilation compiled = compile(std::string(max_policy_bytes + 1, '#'));
  BOOST_REQUIRE(compiled.errors.size() == 1);
  BOOST_TEST(compiled.errors[0].hint == "keep it under 1048576 bytes");
}
