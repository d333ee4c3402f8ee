#include "messages/base/rng.hpp"
#include "tests/messages/bus/support.hpp"

using namespace signalbox;
using namespace signalbox::bus;
using namespace signalbox::tests;

namespace {

const auto keys = fleet_keys();
const Keyring& keys_of(const Identity& identity) { return keys.at(identity.id); }

struct Scene {
  Receiver receiver{{&keys_of(router)}};
  Author proxy_author{&keys_of(proxy), proxy.id};
  Author monitor_author{&keys_of(monitor), monitor.id};
  Author router_author{&keys_of(router), router.id};

  std::string hear(const Packet& packet, Duration at = 200s) {
    const auto outcome = receiver.on_frames(packet.views(), instant_at(at));
    return outcome ? "accepted" : std::string(name_of(outcome.error().reason));
  }
  Duration age(const Packet& packet, Duration at) {
    const auto outcome = receiver.on_frames(packet.views(), instant_at(at));
    BOOST_TEST_REQUIRE(outcome.has_value());
    return (*outcome)->age;
  }
  SenderStats of(const Identity& identity) { return receiver.stats().senders.at(identity.id.str()); }
};

Packet with_hop(Packet packet, Duration hop) {
  const auto bytes = encode_hop(hop);
  packet.parts.emplace_back(bytes.begin(), bytes.end());
  return packet;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_message_by_its_author_is_delivered) {
  Scene scene;
  const auto packet = scene.proxy_author.say(signal_of("e1"));
  const auto outcome = scene.receiver.on_frames(packet.views(), instant_at(200s));
  BOOST_TEST_REQUIRE(outcome.has_value());
  BOOST_TEST((*outcome)->topic == "signal/east/e1/");
  BOOST_TEST((*outcome)->envelope.sequence == 1u);
  BOOST_TEST((*outcome)->age.count() == 0);
  BOOST_TEST(std::get<schema::EngineSignal>((*outcome)->message).engine.str() == "e1");
}

BOOST_AUTO_TEST_CASE(what_is_not_what_it_claims_is_dropped_with_its_reason) {
  struct Row {
    std::string_view name;
    std::function<Packet(Scene&)> make;
    std::string_view expected;
  };
  const Row table[] = {
      {"no frames", [](Scene&) { return Packet{}; }, "malformed"},
      {"three frames",
       [](Scene& s) {
         auto p = s.proxy_author.say(signal_of("e1"));
         p.parts.pop_back();
         return p;
       },
       "malformed"},
      {"garbage envelope",
       [](Scene& s) {
         auto p = s.proxy_author.say(signal_of("e1"));
         p.parts[1] = {0xc1, 0xff};
         return p;
       },
       "malformed"},
      {"hop of three bytes",
       [](Scene& s) {
         auto p = s.proxy_author.say(signal_of("e1"));
         p.parts.push_back({1, 2, 3});
         return p;
       },
       "malformed"},
      {"sent before the clock's origin",
       [](Scene& s) { return s.proxy_author.say(signal_of("e1"), Duration(-1)); }, "malformed"},
      {"unknown kind",
       [](Scene& s) {
         auto p = s.proxy_author.say(signal_of("e1"));
         p.parts[1] = codec::encode(schema::Envelope{proxy.id, {1, 77}, 1, 1s, {}, 9999, 1, 0});
         return p;
       },
       "unknown_kind"},
      {"too long",
       [](Scene& s) {
         auto p = s.proxy_author.say(signal_of("e1"));
         p.parts[2].resize(5000);
         return p;
       },
       "too_large"},
      {"a stranger",
       [](Scene&) {
         return Author{&keys_of(proxy), ProcessName("nobody")}.say(signal_of("e1"));
       },
       "unknown_sender"},
      {"a role that may not say it",
       [](Scene&) {
         return Author{&keys_of(proxy), proxy.id}.say(verdict_of("e1"));
       },
       "not_author"},
      {"another's topic",
       [](Scene& s) { return s.monitor_author.say_on("verdict/e1/monitor-2/", verdict_of("e1")); },
       "not_author"},
      {"another cluster",
       [](Scene& s) {
         auto signal = signal_of("e1");
         signal.cluster = ClusterName("west");
         return s.proxy_author.say(signal);
       },
       "not_author"},
      {"another kind's topic",
       [](Scene& s) { return s.proxy_author.say_on("profile/east/e1/", signal_of("e1")); }, "not_author"},
      {"more topic than there is",
       [](Scene& s) { return s.proxy_author.say_on("signal/east/e1/x/", signal_of("e1")); }, "not_author"},
      {"no slash at the end",
       [](Scene& s) { return s.proxy_author.say_on("signal/east/e1", signal_of("e1")); }, "not_author"},
      {"a body of another topic",
       [](Scene& s) { return s.proxy_author.say_on("signal/east/e2/", signal_of("e1")); }, "wrong_topic"},
      {"signed by another",
       [](Scene&) {
         return Author{&keys_of(proxy), monitor.id}.say(verdict_of("e1"));
       },
       "bad_proof"},
      {"a MAC where a signature is due",
       [](Scene& s) {
         auto p = s.monitor_author.say(verdict_of("e1"));
         p.parts[3] = make_proof(keys_of(monitor), schema::Protection::mac,
                                 {"verdict/e1/monitor-1/", p.parts[1], p.parts[2]});
         return p;
       },
       "bad_proof"},
      {"no proof",
       [](Scene& s) {
         auto p = s.proxy_author.say(signal_of("e1"));
         p.parts[3].clear();
         return p;
       },
       "bad_proof"},
      {"keys of another generation",
       [](Scene& s) {
         auto p = s.monitor_author.say(verdict_of("e1"));
         ++p.parts[3][1];
         return p;
       },
       "bad_proof"},
      {"a body out of bounds",
       [](Scene& s) {
         auto signal = signal_of("e1");
         signal.waiting = -1;
         return s.proxy_author.say(signal);
       },
       "bad_body"},
  };
  for (const Row& row : table) {
    Scene scene;
    BOOST_TEST(scene.hear(row.make(scene)) == row.expected, row.name);
    BOOST_TEST(scene.receiver.stats().total().accepted == 0u, row.name);
  }
}

BOOST_AUTO_TEST_CASE(every_changed_byte_breaks_the_proof_or_is_refused_before) {
  for (const bool is_signed : {false, true}) {
    Scene scene;
    const Packet packet =
        is_signed ? scene.monitor_author.say(verdict_of("e1")) : scene.proxy_author.say(signal_of("e1"));
    for (std::size_t part = 0; part < 4; ++part)
      for (std::size_t at = 0; at < packet.parts[part].size(); ++at) {
        Packet changed = packet;
        changed.parts[part][at] ^= 0x04;
        BOOST_TEST(scene.hear(changed) != "accepted");
      }
    BOOST_TEST(scene.hear(packet) == "accepted");
  }
}

BOOST_AUTO_TEST_CASE(random_frames_are_refused_and_counted_for_nobody_in_particular) {
  Scene scene;
  Rng rng(5);
  for (int i = 0; i < 20'000; ++i) {
    Packet packet;
    packet.parts.resize(rng.below(7));
    for (auto& part : packet.parts) {
      part.resize(rng.below(64));
      for (auto& byte : part) byte = static_cast<std::uint8_t>(rng.next());
    }
    BOOST_TEST_REQUIRE(scene.hear(packet) != "accepted");
  }
  BOOST_TEST(scene.receiver.stats().senders.at("").dropped_for(Drop::malformed) == 20'000u);
}

BOOST_AUTO_TEST_CASE(what_two_forwarders_bring_is_delivered_once) {
  Scene scene;
  const auto first = scene.proxy_author.say(signal_of("e1"));
  const auto second = scene.proxy_author.say(signal_of("e1"));
  BOOST_TEST(scene.hear(first) == "accepted");
  BOOST_TEST(scene.hear(first) == "duplicate");
  BOOST_TEST(scene.hear(second) == "accepted");
  BOOST_TEST(scene.hear(second) == "duplicate");
  BOOST_TEST(scene.of(proxy).missed == 0u);
}

BOOST_AUTO_TEST_CASE(gaps_are_counted_and_forgiven_when_the_other_forwarder_fills_them) {
  Scene scene;
  std::vector<Packet> packets;
  for (int i = 0; i < 5; ++i) packets.push_back(scene.router_author.say(decision_of("d")));
  BOOST_TEST(scene.hear(packets[0]) == "accepted");
  BOOST_TEST(scene.hear(packets[4]) == "accepted");
  BOOST_TEST(scene.of(router).missed == 3u);
  BOOST_TEST(scene.hear(packets[2]) == "accepted");  // a record is worth having late
  BOOST_TEST(scene.hear(packets[2]) == "duplicate");
  BOOST_TEST(scene.of(router).recovered == 1u);
  for (int i = 0; i < 100; ++i) packets.push_back(scene.router_author.say(decision_of("d")));
  BOOST_TEST(scene.hear(packets.back()) == "accepted");
  BOOST_TEST(scene.hear(packets[3]) == "duplicate");  // too far behind to tell
}

BOOST_AUTO_TEST_CASE(an_older_value_after_a_newer_one_is_not_delivered) {
  Scene scene;
  const auto older = scene.proxy_author.say(signal_of("e1"));
  const auto middle = scene.proxy_author.say(signal_of("e1"));
  const auto newer = scene.proxy_author.say(signal_of("e1"));
  BOOST_TEST(scene.hear(older) == "accepted");
  BOOST_TEST(scene.hear(newer) == "accepted");
  BOOST_TEST(scene.hear(middle) == "overtaken");
}

BOOST_AUTO_TEST_CASE(what_was_said_before_we_listened_is_not_missed) {
  Scene scene;
  for (int i = 0; i < 9; ++i) scene.proxy_author.say(signal_of("e1"));
  BOOST_TEST(scene.hear(scene.proxy_author.say(signal_of("e1"))) == "accepted");
  BOOST_TEST(scene.of(proxy).missed == 0u);
}

BOOST_AUTO_TEST_CASE(a_new_life_supersedes_the_old_one_which_may_not_come_back) {
  Scene scene;
  Author old_life{&keys_of(proxy), proxy.id, {1, 10}};
  Author new_life{&keys_of(proxy), proxy.id, {2, 20}};
  for (int i = 0; i < 3; ++i) BOOST_TEST(scene.hear(old_life.say(signal_of("e1"))) == "accepted");
  BOOST_TEST(scene.hear(new_life.say(signal_of("e1"))) == "accepted");  // its sequence begins at 1 again
  BOOST_TEST(scene.hear(old_life.say(signal_of("e1"))) == "superseded");
  BOOST_TEST(scene.hear(old_life.say(signal_of("e2"))) == "superseded");
  BOOST_TEST(scene.hear(new_life.say(signal_of("e1"))) == "accepted");
}

BOOST_AUTO_TEST_CASE(of_two_lives_with_one_counter_the_one_that_spoke_last_counts) {
  Scene scene;
  Author lost{&keys_of(proxy), proxy.id, {1, 10}};
  Author fresh{&keys_of(proxy), proxy.id, {1, 20}};
  BOOST_TEST(scene.hear(lost.say(signal_of("e1"))) == "accepted");
  BOOST_TEST(scene.hear(fresh.say(signal_of("e1"))) == "accepted");
  BOOST_TEST(scene.hear(lost.say(signal_of("e1"))) == "superseded");
}

BOOST_AUTO_TEST_CASE(a_forged_life_cannot_silence_the_true_one) {
  Scene scene;
  BOOST_TEST(scene.hear(scene.monitor_author.say(verdict_of("e1"))) == "accepted");
  Author forger{&keys_of(proxy), monitor.id, {99, 1}};
  BOOST_TEST(scene.hear(forger.say(verdict_of("e1"))) == "bad_proof");
  BOOST_TEST(scene.hear(scene.monitor_author.say(verdict_of("e1"))) == "accepted");
}

BOOST_AUTO_TEST_CASE(age_is_the_excess_over_the_fastest_way_here) {
  Scene scene;
  // The clocks are 1,000 s apart; 3 ms is the fastest way.
  BOOST_TEST(scene.age(scene.proxy_author.say(signal_of("e1"), 10s), 1010s + 5ms).count() == 0);
  BOOST_TEST(scene.age(scene.proxy_author.say(signal_of("e1"), 11s), 1011s + 3ms).count() == 0);
  BOOST_TEST(scene.age(scene.proxy_author.say(signal_of("e1"), 11s), 1011s + 43ms) == Duration(40ms - 4us));
}

BOOST_AUTO_TEST_CASE(a_cached_value_is_as_old_as_its_hop_says) {
  Scene scene;
  const auto cached = with_hop(scene.proxy_author.say(signal_of("e1"), 10s), 7s);
  BOOST_TEST(scene.age(cached, 1017s) == Duration(7s));
  // Its way without the time in the cache is the baseline of what follows.
  BOOST_TEST(scene.age(scene.proxy_author.say(signal_of("e1"), 18s), 1018s).count() == 0);
  BOOST_TEST(scene.age(scene.proxy_author.say(signal_of("e1"), 19s), 1020s) == Duration(1s - 200us));
}

BOOST_AUTO_TEST_CASE(what_is_older_than_its_kind_may_be_is_stale) {
  Scene scene;
  BOOST_TEST(scene.hear(scene.proxy_author.say(signal_of("e1"), 10s), 1010s) == "accepted");
  BOOST_TEST(scene.hear(scene.proxy_author.say(signal_of("e1"), 11s), 1021s + 900ms) == "stale");
  BOOST_TEST(scene.hear(with_hop(scene.proxy_author.say(signal_of("e2"), 12s), 11s), 1023s) == "stale");
  BOOST_TEST(scene.hear(scene.proxy_author.say(signal_of("e1"), 23s), 1023s) == "accepted");
}

BOOST_AUTO_TEST_CASE(slow_drift_of_clocks_is_not_age) {
  Scene scene;
  // The sender's clock loses 50 ppm; a message each 10 s for a day.
  Duration last{};
  for (std::int64_t i = 0; i < 8640; ++i) {
    const Duration at = 1000s + i * 10s;
    last = scene.age(scene.proxy_author.say(signal_of("e1"), 10s + i * 10s - i * 500us), at);
  }
  BOOST_TEST(last < Duration(1ms));
}

BOOST_AUTO_TEST_CASE(topics_of_a_sender_are_bounded) {
  Receiver receiver({&keys_of(router), 0, 2});
  Author author{&keys_of(proxy), proxy.id};
  for (const std::string_view engine : {"e1", "e2"})
    BOOST_TEST(receiver.on_frames(author.say(signal_of(engine)).views(), instant_at(200s)).has_value());
  const auto packet = author.say(signal_of("e3"));
  BOOST_TEST((receiver.on_frames(packet.views(), instant_at(200s)).error().reason == Drop::crowded));
}

BOOST_AUTO_TEST_CASE(another_configuration_is_counted_but_heard) {
  Receiver receiver({&keys_of(router), 42});
  Author author{&keys_of(proxy), proxy.id};
  BOOST_TEST(receiver.on_frames(author.say(signal_of("e1")).views(), instant_at(200s)).has_value());
  BOOST_TEST(receiver.stats().senders.at("proxy-east").fingerprint_mismatches == 1u);
}

BOOST_AUTO_TEST_CASE(without_security_shape_and_source_still_count) {
  Receiver receiver({nullptr});
  Author author{nullptr, proxy.id};
  BOOST_TEST(receiver.on_frames(author.say(signal_of("e1")).views(), instant_at(200s)).has_value());
  Author monitor_author{nullptr, monitor.id};
  const auto packet = monitor_author.say_on("verdict/e1/another/", verdict_of("e1"));
  BOOST_TEST((receiver.on_frames(packet.views(), instant_at(200s)).error().reason == Drop::not_author));
}
