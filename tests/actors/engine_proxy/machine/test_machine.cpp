#include <boost/test/unit_test.hpp>

#include "tests/actors/engine_proxy/machine/driver.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;
using testing::driver;

BOOST_AUTO_TEST_CASE(the_transcript_is_as_recorded) {
  const auto first = tests::check_transcript("engine_proxy", driver());
  BOOST_TEST(first == tests::check_transcript("engine_proxy", driver()));
}

BOOST_AUTO_TEST_CASE(nonsense_of_an_engine_is_absent_and_the_signal_stays_valid) {
  Machine machine = driver().make();
  Machine::Effects effects;
  machine.on_wake(instant_at(0s), effects);
  effects = {};
  ScrapeResult result{
      1, 0, FetchFault::none, 200, "vllm:num_requests_running -5\nvllm:kv_cache_usage_perc 80\n", {}};
  machine.on(Machine::Input(result), instant_at(10ms), effects);
  const schema::EngineSignal* signal = nullptr;
  for (const auto& message : effects.publish)
    if (const auto* s = std::get_if<schema::EngineSignal>(&message)) signal = s;
  BOOST_REQUIRE(signal);
  BOOST_TEST(schema::check(*signal).has_value());
  BOOST_TEST(!signal->running.has_value());
  BOOST_TEST(!signal->kv_usage.has_value());
}
