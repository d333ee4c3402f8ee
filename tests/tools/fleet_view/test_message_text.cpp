#include <boost/test/unit_test.hpp>

#include "messages/base/rng.hpp"
#include "tests/support/random_message.hpp"
#include "tools/fleet_view/message_text.hpp"
#include "tools/fleet_view/snapshot_diff.hpp"
#include "tools/fleet_view/traffic.hpp"

using namespace signalbox;
using namespace signalbox::fleet_view;

namespace {

schema::Delivery delivery(schema::Message message, std::uint64_t sequence = 1) {
  schema::Delivery out;
  out.envelope.source = ProcessName("author");
  out.envelope.sequence = sequence;
  out.topic = schema::topic_of(message, out.envelope.source);
  out.age = 3ms;
  out.message = std::move(message);
  return out;
}

RowNames names() {
  return {[](const Digest&, EngineIndex row) { return "e" + std::to_string(row.value); },
          [](const Digest&, ClassIndex row) { return "c" + std::to_string(row.value); }};
}

schema::RoutingSnapshot snapshot(std::uint64_t sequence, std::vector<schema::WeightRow> weights) {
  schema::RoutingSnapshot out;
  out.version = {{3, ProcessName("o1")}, sequence};
  out.cluster = ClusterName("west");
  out.weights = std::move(weights);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_has_values_with_units_and_leaves_out_what_is_not_said) {
  schema::EngineSignal signal;
  signal.cluster = ClusterName("west"), signal.engine = EngineName("w1");
  signal.running = 3;
  signal.tpot_s = 0.0213;
  signal.reading_age = 120ms;
  BOOST_TEST(line_of(delivery(signal), names()) ==
             "engine_signal    signal/west/w1/              author        #1          3 ms  cluster west  "
             "engine w1  "
             "incarnation 0  scrape ok  reading_age 120 ms  running 3 requests  tpot 21.3 ms  slowness 1  "
             "slowness_samples 0  readings 0  failed_readings 0  curve 0  refused_readings 0");
}

BOOST_AUTO_TEST_CASE(a_block_has_every_field_and_rows_by_name) {
  const auto text = block_of(delivery(snapshot(5, {{ClassIndex(0u), EngineIndex(4u), 0.25, 1.5}})), names());
  for (const char* part :
       {"routing_snapshot: the routing weights of one cluster",
        "on snapshot/west/author/ from author, number 1, 3 ms old", "3@o1.5",
        "hash of the policy that it obeys", "weights (1)", "c0     e4      0.25    1.5 requests"})
    BOOST_TEST(text.find(part) != std::string::npos, part << " is missing in\n" << text);
}

BOOST_AUTO_TEST_CASE(every_message_has_a_text) {
  Rng rng(3);
  tests::RandomMessage random(rng, 3);
  for (std::size_t kind = 0; kind < schema::message_count; ++kind)
    for (int i = 0; i < 20; ++i) {
      const auto message = delivery(random.make_at(kind));
      BOOST_TEST(line_of(message, names()).starts_with(schema::info_of(message.message).name));
      BOOST_TEST(block_of(message, names()).find(schema::info_of(message.message).sentence) !=
                 std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(a_difference_shows_only_what_changed_the_largest_first) {
  const auto row = [](unsigned engine, double weight) {
    return schema::WeightRow{ClassIndex(0u), EngineIndex(engine), weight, weight * 10};
  };
  auto before = snapshot(5, {row(0, 0.5), row(1, 0.3), row(2, 0.2)});
  auto after = snapshot(6, {row(0, 0.5), row(1, 0.45), row(3, 0.05)});
  before.prices = {{EngineIndex(0u), 1.0, 2, 4, 1, schema::Binding::none}};
  after.prices = {{EngineIndex(0u), 1.0, 2, 4, 1, schema::Binding::capacity}};
  const auto tables = difference(before, after, names());
  BOOST_TEST(as_text(tables) ==
             "changes\n"
             "term     before  after\n"
             "version  3@o1.5  3@o1.6\n"
             "\n"
             "weights\n"
             "class  engine  before   after   change  inflight_before  inflight_after\n"
             "c0     e2      0.2000  0.0000  -0.2000             2.00               -\n"
             "c0     e1      0.3000  0.4500   0.1500             3.00            4.50\n"
             "c0     e3      0.0000  0.0500   0.0500                -            0.50\n"
             "\n"
             "admits\n"
             "none\n"
             "\n"
             "prices\n"
             "engine  price_before  price_after  load_before  load_after  capacity_before  capacity_after  "
             "binding_before  binding_after\n"
             "e0            1.0000       1.0000        2.000       2.000            4.000           4.000  "
             "none         "
             "   capacity\n");
  for (const auto& table : difference(before, before, names())) BOOST_TEST(table.rows.empty());
}

BOOST_AUTO_TEST_CASE(traffic_counts_what_is_missing_between_numbers) {
  Traffic traffic{instant_at(10s)};
  const auto hear = [&](std::uint64_t sequence) {
    schema::KeepAlive alive;
    traffic.on(delivery(alive, sequence), 100);
  };
  for (const std::uint64_t sequence : {7, 8, 11, 10, 12}) hear(sequence);
  traffic.refused("stranger");
  BOOST_TEST(traffic.messages() == 5u);
  BOOST_TEST(traffic.lost() == 1u, "9 is missing, 10 came late");
  BOOST_TEST(as_text(traffic.tables(instant_at(12s))) ==
             "traffic\n"
             "sender  message     messages  per_s  kib_per_s  lost  late  oldest_ms\n"
             "author  keep_alive         5    2.5        0.2     1     1        3.0\n"
             "all     -                  5    2.5        0.2     1     1        3.0\n"
             "\n"
             "refused\n"
             "sender    messages\n"
             "stranger         1\n");
}

BOOST_AUTO_TEST_CASE(a_restarted_sender_counts_anew) {
  Traffic traffic{instant_at(0s)};
  auto first = delivery(schema::KeepAlive(), 90);
  auto second = delivery(schema::KeepAlive(), 1);
  second.envelope.incarnation = {2, 5};
  traffic.on(first, 1), traffic.on(second, 1);
  BOOST_TEST(traffic.lost() == 0u);
}
