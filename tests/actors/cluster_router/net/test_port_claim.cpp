#include <boost/test/unit_test.hpp>
#include <optional>

#include "actors/cluster_router/net/port_claim.hpp"
#include "tests/support/results.hpp"

using namespace signalbox;
using namespace signalbox::net;
using tests::error_of;

namespace {

/// A port that is free now; nobody listens there in this test.
std::uint16_t free_port() {
  const auto fd = listen_on(*resolve("127.0.0.1", 0), false);
  return local_address(*fd)->port();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_port_is_shared_with_ones_own_successor_only) {
  const std::uint16_t port = free_port();
  const auto here = *resolve("127.0.0.1", port);
  std::optional<PortClaim> first = *PortClaim::make(here, "fleet/router-east");
  const auto stranger = PortClaim::make(here, "fleet/router-west");
  BOOST_TEST_REQUIRE(!stranger.has_value());
  BOOST_TEST((stranger.error().kind == ErrorKind::conflict));
  BOOST_TEST(stranger.error().text().find("another router has this port (process ") != std::string::npos);
  BOOST_TEST(error_of(PortClaim::make(*resolve("0.0.0.0", port), "fleet/router-west")) != "");
  BOOST_TEST(error_of(PortClaim::make(*resolve("127.0.0.2", port), "fleet/router-west")) == "");
  first.reset();
  BOOST_TEST(error_of(PortClaim::make(here, "fleet/router-west")) == "");
}

BOOST_AUTO_TEST_CASE(a_free_port_is_nobodys) {
  const auto any = *resolve("127.0.0.1", 0);
  const auto one = PortClaim::make(any, "a"), two = PortClaim::make(any, "b");
  BOOST_TEST(error_of(one) == "");
  BOOST_TEST(error_of(two) == "");
}
