// Many pages at a time: who hangs holds nobody else up, and nothing is without bound.
#include <fmt/format.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <mutex>

#include "actors/engine_proxy/fetcher.hpp"
#include "tests/actors/cluster_router/net/scripted_server.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;

namespace {

struct Fixture {
  void ask(Fetcher& fetcher, std::uint64_t number, const net::ScriptedServer& server, Duration timeout,
           Fetcher::Access access = {}) {
    StartScrape what;
    what.number = number;
    what.url = fmt::format("http://{}/metrics", server.address().text());
    what.timeout = timeout;
    fetcher.start(what, std::move(access), [this](ScrapeResult result) {
      const std::lock_guard lock(mutex);
      results.emplace(result.number, std::move(result));
    });
  }
  std::size_t done() {
    const std::lock_guard lock(mutex);
    return results.size();
  }
  /// Waits until so many are done, and lets the servers accept and read meanwhile.
  bool all_done(std::size_t count) {
    return net::turn_until(loop, [&] { return silent.poll(), good.poll(), done() >= count; });
  }
  std::size_t open_at_silent() {
    silent.poll();
    std::size_t open = 0;
    for (const auto& peer : silent.peers) open += peer->closed ? 0 : 1;
    return open;
  }

  net::Loop loop;
  net::ScriptedServer silent{loop}, good{loop};
  std::mutex mutex;
  std::map<std::uint64_t, ScrapeResult> results;
};

const std::string page = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";

}  // namespace

BOOST_FIXTURE_TEST_CASE(engines_that_hang_do_not_hold_up_those_that_answer, Fixture) {
  Fetcher fetcher(Fetcher::Limits{});
  for (std::uint64_t i = 0; i < 40; ++i) ask(fetcher, i, silent, 20s);
  BOOST_REQUIRE(net::turn_until(loop, [&] { return open_at_silent() == 40; }));
  ask(fetcher, 100, good, 20s);
  BOOST_REQUIRE(good.hears(0, "GET /metrics"));
  good.peers[0]->say(page);
  BOOST_REQUIRE(all_done(1));
  BOOST_TEST(results.at(100).body == "good");
  BOOST_TEST((results.at(100).fault == FetchFault::none));
}

BOOST_FIXTURE_TEST_CASE(an_engine_that_hangs_is_given_up_in_time_and_no_more_than_so_many_wait_at_once,
                        Fixture) {
  Fetcher fetcher(Fetcher::Limits{4, 1024});
  for (std::uint64_t i = 0; i < 12; ++i) ask(fetcher, i, silent, 300ms);
  std::size_t most = 0;
  BOOST_REQUIRE(net::turn_until(loop, [&] {
    most = std::max(most, open_at_silent());
    return done() == 12;
  }));
  BOOST_TEST(most >= 1u);
  BOOST_TEST(most <= 4u);
  for (const auto& [number, result] : results) BOOST_TEST((result.fault == FetchFault::timed_out), number);
}

BOOST_FIXTURE_TEST_CASE(a_page_without_end_is_malformed, Fixture) {
  Fetcher fetcher(Fetcher::Limits{4, 1024});
  ask(fetcher, 1, good, 20s);
  BOOST_REQUIRE(good.hears(0, "GET /metrics"));
  good.peers[0]->say("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + std::string(4096, 'x'));
  BOOST_REQUIRE(all_done(1));
  BOOST_TEST((results.at(1).fault == FetchFault::malformed));
}

BOOST_FIXTURE_TEST_CASE(an_engine_that_wants_a_key_is_sent_it, Fixture) {
  Fetcher fetcher(Fetcher::Limits{});
  ask(fetcher, 1, good, 20s, {nullptr, "secret-of-e1"});
  BOOST_REQUIRE(good.hears(0, "Authorization: Bearer secret-of-e1\r\n"));
  good.peers[0]->say(page);
  BOOST_REQUIRE(all_done(1));
}
