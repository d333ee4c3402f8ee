#include <boost/test/unit_test.hpp>
#include <chrono>
#include <msgpack.hpp>

#include "messages/codec/codec.hpp"
#include "tests/support/random_message.hpp"
#include "tests/support/results.hpp"

using namespace signalbox;
using namespace signalbox::schema;

namespace {

codec::Bytes bytes_of(const msgpack::sbuffer& buffer) {
  return {buffer.data(), buffer.data() + buffer.size()};
}

/// Packs by hand what our encoder would not.
template <class F>
codec::Bytes packed(F&& fill) {
  msgpack::sbuffer buffer;
  msgpack::packer<msgpack::sbuffer> pack(buffer);
  fill(pack);
  return bytes_of(buffer);
}

using Packer = msgpack::packer<msgpack::sbuffer>;
void bin(Packer& pack, const std::string& bytes) {
  pack.pack_bin(static_cast<std::uint32_t>(bytes.size()))
      .pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
}

std::string why(std::uint16_t kind, const codec::Bytes& body) {
  const auto decoded = codec::decode(kind, body);
  return decoded ? "accepted" : decoded.error().text();
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_messages_come_back_as_they_were) {
  Rng rng(1);
  for (std::size_t kind = 0; kind < message_count; ++kind)
    for (int round = 0; round < 100; ++round) {
      const Message message = tests::RandomMessage(rng, 5).make_at(kind);
      BOOST_TEST_REQUIRE(check(message).has_value(), tests::error_of(check(message)));
      const auto body = codec::encode(message);
      const auto decoded = codec::decode(info_of(message).kind, body);
      BOOST_TEST_REQUIRE(decoded.has_value(), tests::error_of(decoded));
      BOOST_TEST((codec::encode(*decoded) == body), info_of(message).name);
    }
}

BOOST_AUTO_TEST_CASE(a_message_cut_anywhere_is_refused) {
  Rng rng(2);
  for (std::size_t kind = 0; kind < message_count; ++kind) {
    const Message message = tests::RandomMessage(rng, 3).make_at(kind);
    const auto body = codec::encode(message);
    for (std::size_t size = 0; size < body.size(); ++size)
      BOOST_TEST(!codec::decode(info_of(message).kind, std::span(body).first(size)).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_byte_is_refused_or_gives_a_message_within_bounds) {
  Rng rng(3);
  for (std::size_t kind = 0; kind < message_count; ++kind) {
    const Message message = tests::RandomMessage(rng, 3).make_at(kind);
    auto body = codec::encode(message);
    for (std::size_t at = 0; at < body.size(); ++at)
      for (const std::uint8_t mask : {0x01, 0x20, 0x80, 0xff}) {
        body[at] ^= mask;
        if (const auto decoded = codec::decode(info_of(message).kind, body))
          BOOST_TEST(check(*decoded).has_value());
        body[at] ^= mask;
      }
  }
}

BOOST_AUTO_TEST_CASE(our_bytes_are_what_another_reader_of_messagepack_expects) {
  OrderReceipt receipt{Role::cluster_router, ProcessName("r1"), "o-7", true, "done"};
  const auto body = codec::encode(receipt);
  const auto handle = msgpack::unpack(reinterpret_cast<const char*>(body.data()), body.size());
  std::ostringstream text;
  text << handle.get();
  BOOST_TEST(text.str() == R"({1:3,2:"r1",3:"o-7",4:true,5:"done"})");
}

BOOST_AUTO_TEST_CASE(a_message_of_a_later_version_is_read_without_what_it_added) {
  const auto body = packed([](Packer& pack) {
    pack.pack_map(4);
    pack.pack(60).pack(std::vector<std::map<int, std::string>>{{{1, "x"}}, {}});
    pack.pack(3).pack("o-7");
    pack.pack(61).pack_nil();
    pack.pack(4).pack(true);
  });
  const auto decoded = codec::decode(OrderReceipt::info.kind, body);
  BOOST_TEST_REQUIRE(decoded.has_value(), tests::error_of(decoded));
  const auto& receipt = std::get<OrderReceipt>(*decoded);
  BOOST_TEST(receipt.order == "o-7");
  BOOST_TEST(receipt.done);
  BOOST_TEST(receipt.detail.empty());
}

BOOST_AUTO_TEST_CASE(rows_of_a_later_and_of_an_earlier_version_are_read) {
  const auto body = packed([](Packer& pack) {
    pack.pack_map(1).pack(4).pack_array(3).pack(2);   // rows: two
    pack.pack(std::vector<int>{1, 3, 40, 99, 2, 4});  // class u32, 40 of an unknown type, offered u64
    pack.pack_array(3);
    bin(pack, std::string("\x05\0\0\0\x06\0\0\0", 8));
    bin(pack, "whatever");
    bin(pack, std::string("\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0", 16));
  });
  const auto decoded = codec::decode(DemandReport::info.kind, body);
  BOOST_TEST_REQUIRE(decoded.has_value(), tests::error_of(decoded));
  const auto& rows = std::get<DemandReport>(*decoded).rows;
  BOOST_TEST_REQUIRE(rows.size() == 2u);
  BOOST_TEST(rows[1].request_class.value == 6u);
  BOOST_TEST(rows[1].offered == 2u);
  BOOST_TEST(rows[1].admitted == 0u);  // missing: the default
}

BOOST_AUTO_TEST_CASE(each_way_to_be_wrong_has_its_error) {
  struct Row {
    std::string_view name;
    codec::Bytes body;
    std::string_view expected;
  };
  const auto rows_of = [](int count, std::vector<int> descriptor, std::vector<std::string> columns) {
    return packed([&](Packer& pack) {
      pack.pack_map(1).pack(4).pack_array(3).pack(count).pack(descriptor);
      pack.pack_array(static_cast<std::uint32_t>(columns.size()));
      for (const auto& column : columns) bin(pack, column);
    });
  };
  const Row table[] = {
      {"empty", {}, "demand_report: it ends within a value"},
      {"a huge array", {0xdd, 0x7f, 0xff, 0xff, 0xff}, "demand_report: it claims more than it holds"},
      {"not a map", {0x01}, "demand_report: not a map"},
      {"rest", {0x80, 0x00}, "demand_report: bytes after its end"},
      {"reserved", {0x81, 0x3c, 0xc1}, "demand_report: a byte that MessagePack never uses"},
      {"text for a number", {0x81, 0x03, 0xa1, 'x'}, "demand_report.period: not a number"},
      {"out of bounds", {0x81, 0x03, 0xff}, "demand_report.period: -1e-09 is outside 0..100000"},
      {"twice", {0x82, 0x03, 0x01, 0x03, 0x01}, "demand_report.period: a field given twice"},
      {"bad name", {0x81, 0x01, 0xa2, 'a', '/'}, "demand_report.cluster: not a valid name"},
      {"short digest", {0x81, 0x02, 0xc4, 0x01, 0x00}, "demand_report.policy: not a digest of 32 bytes"},
      {"negative key", {0x81, 0xff, 0x01}, "demand_report: not an unsigned number"},
      {"no column", rows_of(3, {}, {}), "demand_report.rows: rows without a column that is known"},
      {"too many rows", rows_of(10'001, {1, 3}, {""}), "demand_report.rows: 10001 items, at most 10000"},
      {"wrong type", rows_of(1, {1, 4}, {"12345678"}),
       "demand_report.rows: column 'class' is of type 4, not u32"},
      {"short column", rows_of(2, {1, 3}, {"1234"}),
       "demand_report.rows: column 'class' is of 4 bytes, not of 8"},
      {"long column", rows_of(1, {1, 3}, {"12345678"}), "demand_report.rows: 8 bytes, at most 4"},
      {"column twice", rows_of(1, {1, 3, 1, 3}, {"1234", "1234"}),
       "demand_report.rows: a column described twice"},
      {"columns missing", rows_of(1, {1, 3}, {}), "demand_report.rows: an array of 0, not of 1"},
  };
  for (const Row& row : table) BOOST_TEST(why(DemandReport::info.kind, row.body) == row.expected, row.name);

  BOOST_TEST(why(65000, {0x80}) == "kind 65000 is no message of this version");
  BOOST_TEST(why(SnapshotReceipt::info.kind, codec::Bytes(2000, 0x80)) ==
             "snapshot_receipt: 2000 bytes, at most 1024");
  BOOST_TEST(why(OrderReceipt::info.kind, {0x81, 0x01, 0x63}) == "order_receipt.role: 99 is no known value");
  codec::Bytes deep{0x81, 0x3c};
  deep.resize(500, 0x91);
  deep.push_back(0x01);
  BOOST_TEST(why(Beat::info.kind, deep) == "beat: it is nested too deeply");
  EngineProfile profile;
  profile.variance = {1, 2, 3, 4, 5};
  BOOST_TEST(why(EngineProfile::info.kind, codec::encode(profile)) ==
             "engine_profile.variance: 40 bytes, at most 32");
}

BOOST_AUTO_TEST_CASE(a_small_message_cannot_ask_for_much_memory) {
  // 20,000 engines of one byte each would take 100 times their length.
  const auto engines = packed([](Packer& pack) {
    pack.pack_map(1).pack(5).pack_array(20'000);
    for (int i = 0; i < 20'000; ++i) pack.pack_map(0);
  });
  BOOST_TEST(why(FleetTable::info.kind, engines) ==
             "fleet_table.engines: it asks for more memory than its length justifies");
}

BOOST_AUTO_TEST_CASE(a_whole_fleet_table_and_snapshot_fit) {
  FleetTable table;
  table.engines.resize(2000);
  for (auto& engine : table.engines)
    engine.name = EngineName("engine-1"), engine.models.push_back(ModelName("m"));
  BOOST_TEST(codec::decode(FleetTable::info.kind, codec::encode(table)).has_value());
  RoutingSnapshot snapshot;
  snapshot.weights.resize(20'000);
  const auto body = codec::encode(snapshot);
  BOOST_TEST(body.size() < 24u * 20'000 + 500);
  BOOST_TEST(codec::decode(RoutingSnapshot::info.kind, body).has_value());
}

BOOST_AUTO_TEST_CASE(an_envelope_of_a_later_version_is_read_and_a_bad_one_is_not) {
  schema::Envelope e;
  e.source = ProcessName("p"), e.sequence = 1;
  auto bytes = codec::encode(e);
  bytes[0] = 0x9a, bytes.push_back(0x92), bytes.push_back(0x01), bytes.push_back(0xc0);
  BOOST_TEST(codec::decode_envelope(bytes).has_value());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    BOOST_TEST(!codec::decode_envelope(std::span(bytes).first(size)).has_value());
  e.sequence = 0;
  BOOST_TEST(codec::decode_envelope(codec::encode(e)).error().text() == "envelope: no source or no sequence");
  BOOST_TEST(codec::decode_envelope(codec::Bytes(600, 0x90)).error().text() ==
             "envelope: 600 bytes, at most 512");
}

BOOST_AUTO_TEST_CASE(json_is_safe_to_print_and_to_parse) {
  OrderReceipt receipt{Role::cluster_router, ProcessName("r1"), "a\"b\\\n\x1b", true,
                       "gr\xc3\xbc\xc3\x9f \xff"};
  BOOST_TEST(
      codec::to_json(receipt) ==
      "{\"role\":\"cluster-router\",\"id\":\"r1\",\"order\":\"a\\\"b\\\\\\u000a\\u001b\",\"done\":true,"
      "\"detail\":\"gr\xc3\xbc\xc3\x9f \\ufffd\"}");
  schema::Delivery delivery{{}, "beat/tool/t/", 1500ms, EngineFarewell{}};
  delivery.envelope.source = ProcessName("t");
  BOOST_TEST(codec::to_json(delivery).starts_with(R"({"topic":"beat/tool/t/","message":"engine_farewell",)"));
  BOOST_TEST(codec::to_json(delivery).find(R"("age_s":1.5)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_worst_messages_are_refused_fast) {
  codec::Bytes huge_array(8u << 20, 0x91);
  huge_array[0] = 0x81, huge_array[1] = 0x3c;
  codec::Bytes claims{0x81, 0x08, 0x93, 0xce, 0x00,
                      0x1e, 0x84, 0x80, 0x90, 0x90};  // two million rows, no column
  codec::Bytes long_text(100, 'a');
  long_text[0] = 0x81, long_text[1] = 0x11, long_text[2] = 0xdb, long_text[3] = 0x7f;
  for (const codec::Bytes& body : {huge_array, claims, long_text, codec::Bytes(9u << 20, 0)}) {
    const auto begin = std::chrono::steady_clock::now();
    BOOST_TEST(!codec::decode(RoutingSnapshot::info.kind, body).has_value());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    BOOST_TEST_MESSAGE("refused " << body.size() << " bytes in " << took.count() << " ms");
    BOOST_TEST(took.count() < 50);
  }
}
