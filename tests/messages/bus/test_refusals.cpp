// Who is not let in, and what is not believed.
#include <zmq.hpp>

#include "tests/messages/bus/fleet.hpp"

using namespace signalbox;
using namespace signalbox::bus;
using namespace signalbox::tests;

namespace {

/// A member, or not, that speaks ZeroMQ by hand.
struct RawSpeaker {
  zmq::context_t context;
  zmq::socket_t socket{context, zmq::socket_type::xpub};

  RawSpeaker(const Keyring* keyring, const Key32& server, const std::string& endpoint) {
    socket.set(zmq::sockopt::linger, 0);
    if (keyring != nullptr) {
      socket.set(zmq::sockopt::curve_serverkey, zmq::const_buffer(server.data(), 32));
      socket.set(zmq::sockopt::curve_publickey, zmq::const_buffer(keyring->curve_public.data(), 32));
      socket.set(zmq::sockopt::curve_secretkey, zmq::const_buffer(keyring->curve_secret.data(), 32));
    }
    socket.connect(endpoint);
  }
  bool let_in(std::chrono::milliseconds patience) {
    zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
    return zmq::poll(&item, 1, patience) == 1;
  }
  void send(const Packet& packet) {
    for (std::size_t i = 0; i < packet.parts.size(); ++i)
      socket.send(zmq::buffer(packet.parts[i]),
                  i + 1 < packet.parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_member_out_of_its_topics_is_refused_by_the_forwarder) {
  Fleet fleet{bus_a};
  Inbox inbox;
  auto listener = fleet.node(fleet.options(router, {""}), inbox.handlers());
  const Keyring& own = fleet.keys.at(proxy.id);
  RawSpeaker raw(&own, fleet.keys.at(bus_a.id).curve_public, fleet.forwarders[0]->endpoints().publish);
  BOOST_TEST_REQUIRE(raw.let_in(std::chrono::seconds(20)));
  Author honest{&own, proxy.id};
  Author as_monitor{&fleet.keys.at(monitor.id), monitor.id};  // even with the monitor's signing key
  raw.send(honest.say(verdict_of("e1")));                     // not its role
  raw.send(as_monitor.say(verdict_of("e1")));                 // another's name
  raw.send(Packet{{{'@', 'x', '/', 'b'}, {}, {}, {}}});       // a subscriber's private topic
  raw.send(Packet{{{1}, {2}}});                               // garbage
  raw.send(Packet{{{1}, {2}, {3}, {4}, {5}, {6}, {7}}});      // more frames than there are
  raw.send(honest.say(signal_of("e1")));
  BOOST_TEST(eventually([&] { return fleet.forwarders[0]->stats().forwarded == 1; }));
  const auto stats = fleet.forwarders[0]->stats().senders.at("proxy-east");
  BOOST_TEST(stats.dropped_for(Drop::not_author) == 2u);
  BOOST_TEST(stats.dropped_for(Drop::malformed) == 3u);
  BOOST_TEST(eventually([&] { return inbox.count("signal/east/e1/") == 1; }));
  BOOST_TEST(inbox.count() == 1u);
}

BOOST_AUTO_TEST_CASE(a_key_that_no_member_has_is_not_let_in) {
  Fleet fleet{bus_a};
  const auto strangers = make_keyrings({proxy});
  const Key32& server = fleet.keys.at(bus_a.id).curve_public;
  const std::string endpoint = fleet.forwarders[0]->endpoints().publish;
  RawSpeaker stranger(&strangers.at(proxy.id), server, endpoint);
  BOOST_TEST(eventually([&] { return fleet.forwarders[0]->stats().keys_refused > 0; }));
  BOOST_TEST(!stranger.let_in(std::chrono::milliseconds(50)));
  RawSpeaker without_keys(nullptr, server, endpoint);
  RawSpeaker member(&fleet.keys.at(proxy.id), server, endpoint);
  BOOST_TEST(member.let_in(std::chrono::seconds(20)));
  BOOST_TEST(!without_keys.let_in(std::chrono::milliseconds(50)));
}

BOOST_AUTO_TEST_CASE(what_a_forwarder_forges_is_refused_by_the_receiver) {
  // A forwarder without keys of the fleet's authors: it can repeat, not invent.
  Fleet fleet{};
  zmq::context_t context;
  zmq::socket_t publish(context, zmq::socket_type::xsub);
  zmq::socket_t subscribe(context, zmq::socket_type::xpub);
  for (zmq::socket_t* socket : {&publish, &subscribe}) {
    socket->set(zmq::sockopt::linger, 0);
    socket->set(zmq::sockopt::curve_server, true);
    socket->set(zmq::sockopt::curve_secretkey,
                zmq::const_buffer(fleet.keys.at(bus_a.id).curve_secret.data(), 32));
    socket->bind("tcp://127.0.0.1:*");
  }
  Inbox inbox;
  auto options = fleet.options(router, {"verdict/"});
  options.forwarders = {
      {bus_a.id, publish.get(zmq::sockopt::last_endpoint), subscribe.get(zmq::sockopt::last_endpoint)}};
  auto listener = fleet.node(std::move(options), inbox.handlers());
  zmq::message_t subscription;
  while (subscription.to_string_view() != "\x01verdict/")
    BOOST_TEST_REQUIRE(subscribe.recv(subscription).has_value());

  const auto send = [&](const Packet& packet) {
    for (std::size_t i = 0; i < packet.parts.size(); ++i)
      subscribe.send(zmq::buffer(packet.parts[i]),
                     i + 1 < packet.parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  };
  Author forger{&fleet.keys.at(bus_a.id), monitor.id};
  send(forger.say(verdict_of("e1")));
  Author honest{&fleet.keys.at(monitor.id), monitor.id};
  send(honest.say(verdict_of("e1")));
  BOOST_TEST(eventually([&] { return inbox.count() == 1; }));
  BOOST_TEST(listener->stats().received.senders.at("monitor-1").dropped_for(Drop::bad_proof) == 1u);
}
