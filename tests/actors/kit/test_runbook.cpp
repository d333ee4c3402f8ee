#include <boost/test/unit_test.hpp>

#include "actors/kit/shape/alert_list.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;

BOOST_AUTO_TEST_CASE(each_alert_has_its_section_in_the_runbook_and_each_section_its_alert) {
  const std::string runbook = tests::read_file(tests::source_path("docs/runbook.md"));
  std::size_t sections = 0;
  for (auto at = runbook.find("\n## "); at != std::string::npos; at = runbook.find("\n## ", at + 1))
    ++sections;
  BOOST_TEST(sections == kit::alert_kinds.size());
  for (const kit::AlertKind& kind : kit::alert_kinds)
    BOOST_TEST(runbook.find("\n## " + std::string(kind.name) + "\n") != std::string::npos, kind.name);
}
