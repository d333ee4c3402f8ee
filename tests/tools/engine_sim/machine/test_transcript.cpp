// A short life of a small engine as text: admission, chunks, reuse, preemption, faults. Rewritten with
// SIGNALBOX_REWRITE=1.
#include <boost/test/unit_test.hpp>

#include "drive.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::engine_sim;

namespace {
const std::filesystem::path golden =
    signalbox::tests::source_path("tests/tools/engine_sim/machine/transcript.txt");

std::string line(const Event& e) {
  std::string text = fmt::format("{:8.3f} ms  {:<13}", to_seconds(e.at - at_s(0)) * 1e3, to_string(e.kind));
  if (e.kind == EventKind::block_stored || e.kind == EventKind::block_removed)
    return text + fmt::format(" {:04x}", e.block & 0xffff) +
           (e.parent ? fmt::format(" after {:04x}", e.parent & 0xffff) : "");
  text += fmt::format(" request {} tokens {}", e.request, e.tokens);
  if (e.cached_tokens) text += fmt::format(" cached {}", e.cached_tokens);
  if (e.kind == EventKind::finished) text += fmt::format(" {}", to_string(e.reason));
  return text;
}

std::string transcript() {
  EngineOptions o;
  o.curve = {
      .a_s = 0.01, .b_s_per_sequence = 0.001, .k_s_per_context_token = 0, .c_s_per_prefill_token = 1e-4};
  o.kv_blocks = 5;
  o.block_tokens = 4;
  o.chunk_tokens = 8;
  o.report_blocks = true;
  Engine engine(o, 1);
  std::string text;
  const auto tell = [&](std::string_view what, Instant until) {
    text += fmt::format("-- {}\n", what);
    for (const Event& e : run(engine, until)) text += line(e) + "\n";
    const Load load = engine.load();
    text += fmt::format("   running {} waiting {} blocks {}/{}\n", load.running, load.waiting,
                        load.kv_used_blocks, load.kv_blocks);
  };
  engine.submit({.id = 1,
                 .prompt_tokens = 10,
                 .output_tokens = 3,
                 .max_output_tokens = 99,
                 .blocks = content(1, 2, 3, 1)},
                at_s(0));
  tell("request 1: 10 prompt tokens, 2 chunks", at_s(1));
  engine.submit({.id = 2,
                 .prompt_tokens = 11,
                 .output_tokens = 9,
                 .max_output_tokens = 8,
                 .blocks = content(1, 2, 2, 2)},
                at_s(1));
  engine.submit({.id = 3,
                 .prompt_tokens = 9,
                 .output_tokens = 5,
                 .max_output_tokens = 6,
                 .blocks = content(1, 2, 2, 3)},
                at_s(1));
  tell("requests 2 and 3 share request 1's first two blocks and outgrow the memory", at_s(1.05));
  engine.set_faults({.slowness = 2}, at_s(1.05));
  tell("twice as slow", at_s(1.1));
  engine.set_faults({.slowness = 2, .frozen = true}, at_s(1.1));
  tell("frozen", at_s(3));
  engine.set_faults({}, at_s(3));
  tell("healthy", at_s(9));
  return text;
}
}  // namespace

BOOST_AUTO_TEST_CASE(the_transcript_is_as_recorded) { signalbox::tests::check_golden(golden, transcript()); }
