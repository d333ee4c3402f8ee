// Every role's scenarios once more, in the CAF shell: the same transcripts, letter by letter.
#include <boost/test/unit_test.hpp>

#include "tests/actors/cluster_router/machine/driver.hpp"
#include "tests/actors/engine_proxy/machine/driver.hpp"
#include "tests/actors/global_optimizer/machine/driver.hpp"
#include "tests/actors/policy_keeper/machine/driver.hpp"
#include "tests/support/caf_host.hpp"

using namespace signalbox;
using tests::CafHost;
using tests::check_transcript;

BOOST_AUTO_TEST_CASE(engine_proxy_transcript) {
  check_transcript<engine_proxy::Machine, CafHost<engine_proxy::Machine>>("engine_proxy",
                                                                          engine_proxy::testing::driver());
}

BOOST_AUTO_TEST_CASE(policy_keeper_transcript) {
  check_transcript<policy_keeper::Machine, CafHost<policy_keeper::Machine>>("policy_keeper",
                                                                            policy_keeper::testing::driver());
}

BOOST_AUTO_TEST_CASE(cluster_router_transcript) {
  check_transcript<cluster_router::Machine, CafHost<cluster_router::Machine>>(
      "cluster_router", cluster_router::testing::driver());
}

BOOST_AUTO_TEST_CASE(global_optimizer_transcripts) {
  check_transcript<global_optimizer::Machine, CafHost<global_optimizer::Machine>>(
      "global_optimizer", global_optimizer::testing::driver());
  check_transcript<global_optimizer::Machine, CafHost<global_optimizer::Machine>>(
      "global_optimizer_standby", global_optimizer::testing::driver("41\n"));
}
