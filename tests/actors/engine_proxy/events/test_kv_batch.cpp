// Batches of KV events in the shapes that vLLM and SGLang publish, and in none.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <msgpack.hpp>

#include "actors/engine_proxy/events/kv_batch.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;

namespace {

using Packer = msgpack::packer<msgpack::sbuffer>;
using Write = std::function<void(Packer&)>;

std::vector<std::uint8_t> batch(const std::vector<Write>& events, int fields = 3) {
  msgpack::sbuffer buffer;
  Packer p(buffer);
  p.pack_array(static_cast<std::uint32_t>(fields)).pack_double(1764500000.25);
  p.pack_array(static_cast<std::uint32_t>(events.size()));
  for (const Write& event : events) event(p);
  if (fields > 2) p.pack_nil();
  for (int i = 3; i < fields; ++i) p.pack("later");
  return {buffer.data(), buffer.data() + buffer.size()};
}

void hashes(Packer& p, int n, bool as_bytes = false) {
  p.pack_array(static_cast<std::uint32_t>(n));
  for (int i = 0; i < n; ++i) {
    if (as_bytes)
      p.pack_bin(32), p.pack_bin_body(std::string(32, static_cast<char>(i)).data(), 32);
    else
      p.pack_uint64(0xfedcba9876543210u + static_cast<std::uint64_t>(i));
  }
}
void tokens(Packer& p, int n) {
  p.pack_array(static_cast<std::uint32_t>(n));
  for (int i = 0; i < n; ++i) p.pack_uint32(static_cast<std::uint32_t>(100'000 + i));
}

/// vLLM since 0.24.
Write stored_map(int n, std::string_view medium = "GPU", int group = 0,
                 std::string_view kind = "full_attention") {
  return [=](Packer& p) {
    p.pack_map(9);
    p.pack("block_hashes"), hashes(p, n);
    p.pack("type"), p.pack("BlockStored");  // in any order
    p.pack("parent_block_hash"), p.pack_nil();
    p.pack("token_ids"), tokens(p, n * 16);
    p.pack("block_size"), p.pack_int(16);
    p.pack("lora_id"), p.pack_nil();
    p.pack("medium"), p.pack(medium);
    p.pack("group_idx"), p.pack_int(group);
    p.pack("kv_cache_spec_kind"), p.pack(kind);
  };
}
/// vLLM before, as many fields as that release had.
Write stored_array(int n, int fields = 5) {
  return [=](Packer& p) {
    p.pack_array(static_cast<std::uint32_t>(fields));
    p.pack("BlockStored"), hashes(p, n, true);
    p.pack_int64(-5), tokens(p, n * 32), p.pack_int(32);
    for (int i = 5; i < fields; ++i) i == 6 ? void(p.pack("GPU")) : void(p.pack_nil());
  };
}
Write removed_map(int n, std::string_view medium = "GPU") {
  return [=](Packer& p) {
    p.pack_map(3);
    p.pack("type"), p.pack("BlockRemoved");
    p.pack("block_hashes"), hashes(p, n);
    p.pack("medium"), p.pack(medium);
  };
}
Write removed_array(int n) {
  return [=](Packer& p) {
    p.pack_array(2);
    p.pack("BlockRemoved"), hashes(p, n);
  };
}
void cleared_map(Packer& p) { p.pack_map(1), p.pack("type"), p.pack("AllBlocksCleared"); }
void cleared_array(Packer& p) { p.pack_array(1), p.pack("AllBlocksCleared"); }

KvCounts read(const std::vector<std::uint8_t>& bytes) {
  const auto out = read_kv_batch(bytes);
  BOOST_REQUIRE(out.has_value());
  return *out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_shapes_of_events_are_read) {
  const KvCounts maps = read(batch({stored_map(3), removed_map(1), stored_map(2)}));
  BOOST_TEST((maps.stored == 5u && maps.removed == 1u && maps.skipped == 0u && maps.block_tokens == 16u));
  for (int fields = 5; fields <= 12; ++fields) {
    const KvCounts arrays = read(batch({stored_array(4, fields), removed_array(2)}, 2));
    BOOST_TEST(
        (arrays.stored == 4u && arrays.removed == 2u && arrays.skipped == 0u && arrays.block_tokens == 32u));
  }
  BOOST_TEST(read(batch({}, 4)).stored == 0u);
}

BOOST_AUTO_TEST_CASE(an_outer_map_is_a_batch_too) {
  msgpack::sbuffer buffer;
  Packer p(buffer);
  p.pack_map(3);
  p.pack("ts"), p.pack_double(1);
  p.pack("data_parallel_rank"), p.pack_int(3);
  p.pack("events"), p.pack_array(1), stored_map(2)(p);
  BOOST_TEST(read({buffer.data(), buffer.data() + buffer.size()}).stored == 2u);
}

BOOST_AUTO_TEST_CASE(after_a_clear_counting_begins_again) {
  const KvCounts counts = read(batch({stored_map(9), cleared_map, stored_map(2), removed_map(1)}));
  BOOST_TEST((counts.clears == 1u && counts.stored == 11u && counts.stored_since_clear == 2u &&
              counts.removed_since_clear == 1u));
  BOOST_TEST(read(batch({cleared_array, cleared_array})).clears == 2u);
}

BOOST_AUTO_TEST_CASE(only_blocks_of_the_engines_own_memory_and_main_attention_count) {
  const KvCounts counts =
      read(batch({stored_map(1), stored_map(2, "CPU_PINNED"), stored_map(4, "GPU", 1),
                  stored_map(8, "GPU", 0, "sliding_window"), removed_map(3, "CPU_PINNED")}));
  BOOST_TEST((counts.stored == 1u && counts.removed == 0u && counts.skipped == 0u));
}

BOOST_AUTO_TEST_CASE(an_unknown_event_is_skipped_and_counted_and_its_batch_survives) {
  const auto strange_map = [](Packer& p) {
    p.pack_map(2), p.pack("type"), p.pack("BlockPondered"), p.pack("x"), p.pack_nil();
  };
  const auto strange_array = [](Packer& p) {
    p.pack_array(2), p.pack("BlockPondered"), p.pack_array(1), p.pack_int(3);
  };
  const auto no_event = [](Packer& p) { p.pack_int(17); };
  const auto no_type = [](Packer& p) { p.pack_map(1), p.pack("block_hashes"), hashes(p, 2); };
  const auto strange_fields = [](Packer& p) {
    p.pack_map(4);
    p.pack("type"), p.pack("BlockStored");
    p.pack("block_hashes"), p.pack("none");  // not a list: no block
    p.pack_int(3), p.pack_int(4);
    p.pack("medium"), p.pack_int(9);
  };
  const KvCounts counts = read(
      batch({stored_map(1), strange_map, strange_array, no_event, no_type, strange_fields, removed_map(1)}));
  BOOST_TEST((counts.stored == 1u && counts.removed == 1u));
  BOOST_TEST(counts.skipped == 4u);
}

BOOST_AUTO_TEST_CASE(no_bytes_end_the_reader_and_none_make_it_take_memory) {
  const std::vector<std::uint8_t> good =
      batch({stored_map(3), removed_map(1), cleared_map, stored_array(2, 12)});
  Rng rng(8);
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    BOOST_TEST(!read_kv_batch(std::span(good).first(cut)).has_value());
  for (int i = 0; i < 20'000; ++i) {
    auto bad = good;
    for (int n = 0; n < 3; ++n) bad[rng.below(bad.size())] = static_cast<std::uint8_t>(rng.below(256));
    static_cast<void>(read_kv_batch(bad));
  }
  const std::vector<std::uint8_t> huge{0x93, 0x00, 0xdd, 0x7f, 0xff, 0xff, 0xff};
  BOOST_TEST(!read_kv_batch(huge).has_value());
  BOOST_TEST(!read_kv_batch(std::vector<std::uint8_t>(100'000, 0x91)).has_value());
}
