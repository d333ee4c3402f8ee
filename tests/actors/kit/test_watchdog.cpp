#include <sys/socket.h>
#include <sys/un.h>

#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/net/stream.hpp"
#include "actors/kit/watchdog.hpp"

using namespace signalbox;
using kit::LoopWatch;
using kit::Watchdog;

namespace {

/// Stands in for systemd: what a process says of itself is at once in its queue.
class Supervisor {
 public:
  Supervisor() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    socklen_t size = sizeof name;
    BOOST_REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name.sun_family) ==
                  0);
    BOOST_REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    path = "@" + std::string(name.sun_path + 1, size - sizeof name.sun_family - 1);
  }
  /// The next datagram, or nothing.
  std::string heard() const {
    char text[256];
    const auto got = ::recv(socket_.get(), text, sizeof text, 0);
    return got < 0 ? std::string() : std::string(text, static_cast<std::size_t>(got));
  }
  std::string path;

 private:
  net::Fd socket_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_supervisor_hears_of_start_life_and_end) {
  const Supervisor supervisor;
  const Watchdog watchdog(supervisor.path, 10s);
  watchdog.started();
  BOOST_TEST(supervisor.heard().starts_with("READY=1\n"));
  watchdog.turned(0s);
  BOOST_TEST(supervisor.heard() == "WATCHDOG=1");
  watchdog.turned(6s);  // another loop hangs
  BOOST_TEST(supervisor.heard() == "");
  watchdog.stopping();
  BOOST_TEST(supervisor.heard().starts_with("STOPPING=1\n"));
}

BOOST_AUTO_TEST_CASE(nobody_is_told_where_nobody_asked) {
  const Supervisor supervisor;
  Watchdog(supervisor.path, 0s).turned(0s);
  BOOST_TEST(supervisor.heard() == "");
  Watchdog("", 10s).started();
  Watchdog("@nobody-listens-here", 10s).turned(0s);
  Watchdog(std::string(300, 'x'), 10s).started();
}

BOOST_AUTO_TEST_CASE(the_latest_of_all_loops_counts) {
  LoopWatch loops;
  BOOST_TEST((loops.latest(instant_at(100s)) == 0s));
  loops.add([] { return instant_at(99s); });
  loops.add([] { return instant_at(93s); });
  BOOST_TEST((loops.latest(instant_at(100s)) == 7s));
}
