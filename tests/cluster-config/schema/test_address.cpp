#include <boost/test/unit_test.hpp>

#include "cluster-config/schema/address.hpp"

using namespace signalbox;
using namespace signalbox::config;

namespace {

struct Row {
  const char* text;
  const char* resolved;  ///< nullptr: refused
};

template <class Resolve>
void check(const Row& row, Resolve resolve) {
  const auto got = resolve(row.text, std::uint16_t{18000});
  BOOST_TEST(got.has_value() == (row.resolved != nullptr), row.text);
  if (got && row.resolved) BOOST_TEST(*got == row.resolved, row.text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(addresses_are_resolved_against_the_port_base) {
  for (const Row& row :
       {Row{"+7", "127.0.0.1:18007"}, Row{"127.0.0.1:+7", "127.0.0.1:18007"}, Row{":8080", "127.0.0.1:8080"},
        Row{"router.example.net:80", "router.example.net:80"}, Row{"[::1]:80", "[::1]:80"},
        Row{"+98", "127.0.0.1:18098"}, Row{"+99", nullptr}, Row{"+", nullptr}, Row{"", nullptr},
        Row{"host", nullptr}, Row{"host:", nullptr}, Row{"host:0", nullptr}, Row{"host:65536", nullptr},
        Row{"ho st:1", nullptr}, Row{"host:1x", nullptr}, Row{"[zz]:1", nullptr}, Row{"host:-1", nullptr}})
    check(row, resolve_address);
}

BOOST_AUTO_TEST_CASE(urls_have_scheme_host_and_port) {
  for (const Row& row :
       {Row{"http://+1", "http://127.0.0.1:18001"}, Row{"http://h:8/", "http://h:8"},
        Row{"http://h", "http://h:80"}, Row{"https://h", "https://h:443"},
        Row{"http://[::1]", "http://[::1]:80"}, Row{"http://[::1]:5", "http://[::1]:5"},
        Row{"http://h/v1", nullptr}, Row{"ftp://h", nullptr}, Row{"h:80", nullptr}, Row{"http://", nullptr}})
    check(row, resolve_url);
}

BOOST_AUTO_TEST_CASE(endpoints_are_tcp_or_ipc) {
  for (const Row& row :
       {Row{"tcp://+1", "tcp://127.0.0.1:18001"}, Row{"tcp://h:5", "tcp://h:5"},
        Row{"ipc://bus.sock", "ipc://bus.sock"}, Row{"ipc://", nullptr}, Row{"inproc://x", nullptr}})
    check(row, resolve_endpoint);
}

BOOST_AUTO_TEST_CASE(loopback_is_seen_through_schemes) {
  for (const char* text : {"127.0.0.1:1", "http://127.3.2.1:1", "tcp://[::1]:5", "localhost:80"})
    BOOST_TEST(is_loopback(text), text);
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:127", "tcp://h:1", "ipc://127.0.0.1", "1127.0.0.1:1"})
    BOOST_TEST(!is_loopback(text), text);
}
