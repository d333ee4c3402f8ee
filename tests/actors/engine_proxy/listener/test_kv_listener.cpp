// The listener against the engine stand-in's publisher, over real sockets.
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>

#include "actors/engine_proxy/listener/kv_listener.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/results.hpp"
#include "tools/engine_sim/kv_publisher.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;
using engine_sim::KvFormat;
using engine_sim::KvPublisher;

namespace {

struct Pair {
  explicit Pair(KvFormat format, bool can_ask = true) {
    options.events = "ipc://" + (folder / "events");
    if (can_ask) options.replay = "ipc://" + (folder / "replay");
    options.format = format;
  }
  void start_engine() {
    engine.emplace();
    const Status started = engine->start(options);
    BOOST_REQUIRE_MESSAGE(started.has_value(), tests::error_of(started));
  }
  void start_listener() {
    listener.emplace(std::vector<KvSource>{{options.events, options.replay, [this](const KvState& state) {
                                              const std::lock_guard lock(mutex);
                                              told = state;
                                              changed.notify_all();
                                            }}});
    BOOST_REQUIRE(listener->start().has_value());
  }
  void batch(int stored, int removed = 0, bool strange = false, bool lost = false) {
    for (int i = 0; i < stored; ++i) ++block, engine->stored(block, block - 1, 16);
    for (int i = 0; i < removed; ++i) engine->removed(block - static_cast<unsigned>(i));
    engine->publish(1, strange, lost);
  }
  template <class F>
  bool comes(F&& wanted, std::chrono::milliseconds within = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, within, [&] { return wanted(told); });
  }

  tests::Folder folder;
  engine_sim::KvOptions options;
  std::optional<KvPublisher> engine;
  std::uint64_t block = 0;
  std::mutex mutex;
  std::condition_variable changed;
  KvState told;
  std::optional<KvListener> listener;
};

}  // namespace

BOOST_AUTO_TEST_CASE(events_of_both_formats_are_heard_also_those_of_before) {
  for (const KvFormat format : {KvFormat::maps, KvFormat::arrays}) {
    Pair pair(format);
    pair.start_engine();
    for (int i = 0; i < 5; ++i) pair.batch(10, 1);
    pair.start_listener();
    BOOST_TEST(pair.comes([](const KvState& s) { return s.held_blocks == 45; }));
    pair.batch(3, 0, true);
    BOOST_TEST(pair.comes([](const KvState& s) { return s.held_blocks == 48 && s.events_skipped == 1; }));
    pair.engine->cleared();
    pair.engine->publish(1, false, false);
    BOOST_TEST(pair.comes([](const KvState& s) { return s.clears == 1 && s.held_blocks == 0; }));
    pair.batch(2);
    BOOST_TEST(pair.comes([](const KvState& s) {
      return s.held_blocks == 2 && s.knowledge == schema::CacheKnowledge::complete && s.missed == 0 &&
             s.block_tokens == 16;
    }));
  }
}

BOOST_AUTO_TEST_CASE(lost_batches_are_asked_for) {
  Pair pair(KvFormat::maps);
  pair.start_engine();
  pair.start_listener();
  pair.batch(1);
  BOOST_TEST(pair.comes([](const KvState& s) { return s.held_blocks == 1; }));
  pair.batch(10, 0, false, true);
  pair.batch(100, 0, false, true);
  pair.batch(1);
  BOOST_TEST(pair.comes([](const KvState& s) { return s.held_blocks == 112 && s.missed == 0; }));
}

BOOST_AUTO_TEST_CASE(an_engine_that_is_started_anew_has_an_empty_cache) {
  Pair pair(KvFormat::maps);
  pair.start_engine();
  pair.start_listener();
  for (int i = 0; i < 4; ++i) pair.batch(10);
  BOOST_TEST(pair.comes([](const KvState& s) { return s.held_blocks == 40; }));
  pair.engine.reset();
  pair.start_engine();
  // Until the connection stands again nobody hears it; then its number tells.
  bool told = false;
  for (int i = 0; i < 200 && !told; ++i) {
    pair.batch(1);
    told = pair.comes([](const KvState& s) { return s.clears >= 1; }, std::chrono::milliseconds(100));
  }
  BOOST_TEST(told, "batches " << pair.told.batches << ", replayed " << pair.told.replayed << ", missed "
                              << pair.told.missed << ", held " << pair.told.held_blocks);
}

BOOST_AUTO_TEST_CASE(it_ends_while_the_engine_is_not_there) {
  Pair pair(KvFormat::maps);
  pair.start_listener();
  pair.listener.reset();
  BOOST_TEST(pair.told.batches == 0u);
}
