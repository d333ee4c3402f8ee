#include <boost/test/unit_test.hpp>
#include <cmath>

#include "drive.hpp"

using namespace signalbox;
using namespace signalbox::engine_sim;

namespace {
EngineOptions plain() {
  EngineOptions o;
  o.curve = {
      .a_s = 0.01, .b_s_per_sequence = 0.001, .k_s_per_context_token = 1e-6, .c_s_per_prefill_token = 1e-4};
  return o;
}
Request asks(RequestId id, std::uint32_t prompt, std::uint32_t output) {
  return {.id = id, .prompt_tokens = prompt, .output_tokens = output, .max_output_tokens = output};
}
std::size_t count(const std::vector<Event>& events, EventKind kind) {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [&](const Event& e) { return e.kind == kind; }));
}
}  // namespace

BOOST_AUTO_TEST_SUITE(engine)

BOOST_AUTO_TEST_CASE(one_request_takes_the_formula_s_time) {
  Engine engine(plain(), 1);
  BOOST_TEST((engine.submit(asks(7, 100, 3), at_s(5)) == Admission::accepted));
  const auto events = run(engine);
  BOOST_REQUIRE_EQUAL(events.size(), 4u);
  const double first = 0.01 + 100 * 1e-4;
  const double second = 0.01 + 0.001 + 101 * 1e-6, third = 0.01 + 0.001 + 102 * 1e-6;
  const double expected[] = {first, first + second, first + second + third, first + second + third};
  for (std::size_t i = 0; i < 4; ++i)
    BOOST_TEST(to_seconds(events[i].at - at_s(5)) == expected[i], boost::test_tools::tolerance(1e-6));
  BOOST_TEST((events[0].kind == EventKind::first_token && events[3].kind == EventKind::finished));
  BOOST_TEST((events[3].reason == FinishReason::length));
  BOOST_TEST(engine.counters().first_token_s.sum() == first, boost::test_tools::tolerance(1e-6));
  BOOST_TEST((engine.next_wake() == end_of_time));
}

BOOST_AUTO_TEST_CASE(in_a_closed_loop_the_time_per_token_is_the_formula_at_that_batch) {
  for (const std::uint32_t n : {1u, 4u, 32u, 128u}) {
    EngineOptions o = plain();
    o.step_tokens = 128 * 64 + 1;
    Engine engine(o, 1);
    for (RequestId id = 0; id < n; ++id) engine.submit(asks(id, 64, 101), at_s(0));
    std::vector<double> finished, first;
    for (const Event& e : run(engine)) {
      if (e.kind == EventKind::first_token) first.push_back(to_seconds(e.at - at_s(0)));
      if (e.kind == EventKind::finished) finished.push_back(to_seconds(e.at - at_s(0)));
    }
    BOOST_REQUIRE_EQUAL(finished.size(), n);
    const double context = 64 + 50.5;  // the mean length of a sequence over its 100 decoding steps
    const double expected = 0.01 + 0.001 * n + 1e-6 * n * context;
    for (std::size_t i = 0; i < n; ++i)
      BOOST_TEST((finished[i] - first[i]) / 100 == expected, boost::test_tools::tolerance(1e-6));
  }
}

BOOST_AUTO_TEST_CASE(prefill_is_cut_into_chunks_while_others_decode) {
  EngineOptions o = plain();
  o.chunk_tokens = 100;
  Engine engine(o, 1);
  engine.submit(asks(1, 10, 50), at_s(0));
  run(engine, at_s(0.1));
  engine.submit(asks(2, 1000, 1), at_s(0.1));
  int tokens_of_first = 0;
  for (const Event& e : run(engine)) {
    if (e.request == 2 && e.kind == EventKind::first_token) break;
    tokens_of_first += e.request == 1;
  }
  // Ten chunks, after the step that was in flight when the long prompt came.
  BOOST_TEST(tokens_of_first >= 10);
  BOOST_TEST(tokens_of_first <= 11);
}

BOOST_AUTO_TEST_CASE(refusals) {
  EngineOptions o = plain();
  o.max_waiting = 2;
  o.kv_blocks = 10;
  Engine engine(o, 1);
  const struct {
    const char* name;
    Request request;
    Admission expected;
  } rows[] = {
      {"no prompt", asks(1, 0, 5), Admission::empty},
      {"over the memory", asks(1, 100, 61), Admission::too_long},
      {"exactly the memory", asks(1, 100, 60), Admission::accepted},
      {"same id", asks(1, 1, 1), Admission::duplicate},
      {"second", asks(2, 1, 1), Admission::accepted},
      {"queue full", asks(3, 1, 1), Admission::queue_full},
  };
  for (const auto& row : rows) BOOST_TEST((engine.submit(row.request, at_s(0)) == row.expected), row.name);
  BOOST_TEST(engine.counters().refused == 4u);
  BOOST_TEST(engine.counters().accepted == 2u);
}

BOOST_AUTO_TEST_CASE(options_are_checked) {
  const struct {
    const char* name;
    void (*spoil)(EngineOptions&);
  } rows[] = {
      {"speed", [](EngineOptions& o) { o.speed = 0; }},
      {"speed nan", [](EngineOptions& o) { o.speed = std::nan(""); }},
      {"block_tokens", [](EngineOptions& o) { o.block_tokens = 0; }},
      {"kv_blocks", [](EngineOptions& o) { o.kv_blocks = 0; }},
      {"step_tokens", [](EngineOptions& o) { o.step_tokens = o.max_batch; }},
      {"negative b", [](EngineOptions& o) { o.curve.b_s_per_sequence = -1; }},
      {"no step time", [](EngineOptions& o) { o.curve.a_s = 0; }},
  };
  BOOST_TEST(check(EngineOptions{}).has_value());
  for (const auto& row : rows) {
    EngineOptions o;
    row.spoil(o);
    BOOST_TEST(!check(o).has_value(), row.name);
  }
}

BOOST_AUTO_TEST_CASE(a_second_turn_finds_the_first_one_and_its_answer) {
  EngineOptions o = plain();
  o.report_blocks = true;
  Engine engine(o, 1);
  const auto hashes = content(1, 0, 10, 1);
  Request first = asks(1, 64, 33);  // KV of 96 tokens is computed: 6 blocks of 16
  first.blocks = hashes;
  engine.submit(first, at_s(0));
  BOOST_TEST(count(run(engine), EventKind::block_stored) == 6u);
  BOOST_TEST(engine.cached_prefix_tokens(hashes) == 96u);
  Request second = asks(2, 160, 1);
  second.blocks = hashes;
  engine.submit(second, at_s(1));
  const auto events = run(engine);
  BOOST_TEST(events.back().cached_tokens == 96u);
  BOOST_TEST(engine.counters().prefix_queries == 224u);
  BOOST_TEST(engine.counters().prefix_hits == 96u);
  // Once more: all ten blocks are known, but the last token is always computed.
  second.id = 3;
  engine.submit(second, at_s(2));
  BOOST_TEST(run(engine).back().cached_tokens == 144u);
}

BOOST_AUTO_TEST_CASE(memory_pressure_preempts_the_youngest_and_everybody_finishes) {
  EngineOptions o = plain();
  o.kv_blocks = 8;
  Engine engine(o, 1);
  engine.submit(asks(1, 48, 60), at_s(0));
  engine.submit(asks(2, 48, 60), at_s(0));
  const auto events = run(engine);
  BOOST_TEST(engine.counters().preemptions > 0u);
  for (const Event& e : events) BOOST_TEST((e.kind != EventKind::preempted || e.request == 2));
  BOOST_TEST(count(events, EventKind::finished) == 2u);
  BOOST_TEST(count(events, EventKind::first_token) == 2u);
  BOOST_TEST(engine.counters().generation_tokens == 120u);
}

BOOST_AUTO_TEST_CASE(embeddings_finish_without_a_token) {
  Engine engine(plain(), 1);
  engine.submit(asks(1, 30, 0), at_s(0));
  const auto events = run(engine);
  BOOST_REQUIRE_EQUAL(events.size(), 1u);
  BOOST_TEST((events[0].kind == EventKind::finished && events[0].reason == FinishReason::stop));
}

BOOST_AUTO_TEST_CASE(cancel_frees_memory_wherever_the_request_is) {
  EngineOptions o = plain();
  o.max_batch = 1;
  Engine engine(o, 1);
  engine.submit(asks(1, 160, 1000), at_s(0));
  engine.submit(asks(2, 160, 10), at_s(0));
  engine.submit(asks(3, 160, 10), at_s(0));
  run(engine, at_s(0.2));
  BOOST_TEST(engine.load().running == 1u);
  BOOST_TEST(engine.cancel(3, at_s(0.2)));  // waiting
  BOOST_TEST(engine.cancel(1, at_s(0.2)));  // in the batch
  BOOST_TEST(!engine.cancel(1, at_s(0.2)));
  BOOST_TEST(engine.pool().used_blocks() == 0u);
  BOOST_TEST(engine.consistent());
  const auto events = run(engine);
  BOOST_TEST((events.back().kind == EventKind::finished && events.back().request == 2));
  BOOST_TEST(count(events, EventKind::finished) == 1u);
  BOOST_TEST(engine.counters().finished_cancelled == 2u);
}

BOOST_AUTO_TEST_CASE(slowness_stretches_what_remains_of_the_step) {
  Engine engine(plain(), 1);
  engine.submit(asks(1, 100, 1), at_s(0));  // 20 ms
  run(engine, at_s(0.01));
  engine.set_faults({.slowness = 3}, at_s(0.01));
  BOOST_TEST(to_seconds(engine.next_wake() - at_s(0)) == 0.04, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(a_frozen_engine_accepts_and_goes_on_where_it_stopped) {
  Engine engine(plain(), 1);
  engine.submit(asks(1, 100, 1), at_s(0));
  run(engine, at_s(0.005));
  engine.set_faults({.frozen = true}, at_s(0.005));
  BOOST_TEST((engine.submit(asks(2, 100, 1), at_s(1)) == Admission::accepted));
  BOOST_TEST((engine.next_wake() == end_of_time));
  engine.set_faults({}, at_s(10));
  const auto events = run(engine);
  BOOST_TEST(to_seconds(events.front().at - at_s(10)) == 0.015, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(count(events, EventKind::finished) == 2u);
}

BOOST_AUTO_TEST_CASE(frozen_while_idle_begins_at_the_thaw) {
  Engine engine(plain(), 1);
  engine.set_faults({.frozen = true}, at_s(0));
  engine.submit(asks(1, 100, 1), at_s(1));
  BOOST_TEST((engine.next_wake() == end_of_time));
  engine.set_faults({}, at_s(4));
  BOOST_TEST(to_seconds(run(engine).back().at - at_s(4)) == 0.02, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(speed_divides_time) {
  EngineOptions o = plain();
  o.speed = 4;
  Engine engine(o, 1);
  engine.submit(asks(1, 100, 1), at_s(0));
  BOOST_TEST(to_seconds(run(engine).back().at - at_s(0)) == 0.005, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_SUITE_END()
