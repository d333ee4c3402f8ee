#include <boost/test/unit_test.hpp>

#include "actors/engine_proxy/adapters/adapter.hpp"

using namespace signalbox;
using namespace signalbox::engine_proxy;

namespace {
Reading read(EngineKind kind, std::string_view path, std::string_view body) {
  for (const Page& page : adapter_of(kind).pages)
    if (page.path == path) {
      Reading out;
      const auto status = page.read(body, out);
      BOOST_REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
      return out;
    }
  BOOST_FAIL("no such page");
  return {};
}
bool has(const Reading& reading, std::string_view name) {
  return std::find(reading.names.begin(), reading.names.end(), name) != reading.names.end();
}
}  // namespace

BOOST_AUTO_TEST_CASE(vllm) {
  const Reading r = read(EngineKind::vllm, "/metrics", R"(# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 5.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.4
vllm:prompt_tokens_total{model_name="m"} 1000
vllm:prompt_tokens_cached_total{model_name="m"} 300
vllm:generation_tokens_total{model_name="m"} 500
vllm:request_success_total{finished_reason="stop"} 7
vllm:request_success_total{finished_reason="length"} 2
vllm:inter_token_latency_seconds_sum 10
vllm:inter_token_latency_seconds_count 400
vllm:time_to_first_token_seconds_sum 4
vllm:time_to_first_token_seconds_count 9
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",other="auto"} 1.0
process_start_time_seconds 1.7e9
)");
  BOOST_TEST(r.running.value() == 8);
  BOOST_TEST(r.waiting.value() == 2);
  BOOST_TEST(r.kv_usage.value() == 0.3, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(r.kv_capacity_tokens.value() == 16'000);
  BOOST_TEST(r.cached_tokens_total.value() == 300);
  BOOST_TEST(r.requests_total.value() == 9);
  BOOST_TEST(r.token_time.value().sum_s == 10);
  BOOST_TEST(r.token_time.value().count == 400);
  BOOST_TEST(r.start_time_s.value() == 1.7e9);
  BOOST_TEST(!r.preemptions_total.has_value());
  BOOST_TEST(has(r, "vllm:inter_token_latency_seconds"));
}

BOOST_AUTO_TEST_CASE(old_vllm_names_are_known_and_shown) {
  const Reading r = read(EngineKind::vllm, "/metrics",
                         "vllm:gpu_cache_usage_perc 0.5\nvllm:time_per_output_token_seconds_sum 1\n"
                         "vllm:time_per_output_token_seconds_count 2\nvllm:gpu_prefix_cache_hits_total 4\n");
  BOOST_TEST(r.kv_usage.value() == 0.5);
  BOOST_TEST(r.token_time.value().count == 2);
  BOOST_TEST(r.cached_tokens_total.value() == 4);
  BOOST_TEST(has(r, "vllm:gpu_cache_usage_perc"));
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_absent_and_not_zero) {
  const Reading r = read(EngineKind::vllm, "/metrics", "something_else 1\n");
  BOOST_TEST(!r.running.has_value());
  BOOST_TEST(!r.kv_usage.has_value());
  BOOST_TEST(!r.token_time.has_value());
  BOOST_TEST(r.names.empty());
}

BOOST_AUTO_TEST_CASE(llamacpp) {
  const Reading r = read(EngineKind::llamacpp, "/metrics",
                         "llamacpp:prompt_tokens_total 100\nllamacpp:tokens_predicted_total 40\n"
                         "llamacpp:tokens_predicted_seconds_total 2\nllamacpp:requests_processing 1\n"
                         "llamacpp:requests_deferred 0\n");
  BOOST_TEST(r.running.value() == 1);
  BOOST_TEST(r.waiting.value() == 0);
  BOOST_TEST(r.token_time.value().sum_s == 2);
  BOOST_TEST(r.token_time.value().count == 40);
  BOOST_TEST(!r.kv_usage.has_value());
  const Reading slots = read(EngineKind::llamacpp, "/slots",
                             R"([{"id":0,"n_ctx":512},{"id":1,"n_ctx":512,"is_processing":true}])");
  BOOST_TEST(slots.max_batch.value() == 2);
  BOOST_TEST(slots.kv_capacity_tokens.value() == 1024);
  const Reading props = read(EngineKind::llamacpp, "/props",
                             R"({"default_generation_settings":{"n_ctx":256},"total_slots":4})");
  BOOST_TEST(props.max_batch.value() == 4);
  BOOST_TEST(props.kv_capacity_tokens.value() == 1024);
}

BOOST_AUTO_TEST_CASE(broken_pages_are_refused) {
  for (const EngineKind kind : {EngineKind::vllm, EngineKind::sglang, EngineKind::llamacpp})
    for (const Page& page : adapter_of(kind).pages) {
      Reading out;
      BOOST_TEST(!page.read("<html>not here</html>", out).has_value());
    }
}

BOOST_AUTO_TEST_CASE(every_kind_has_an_adapter) {
  for (std::size_t i = 0; i < enum_size<EngineKind>; ++i)
    BOOST_TEST(!adapter_of(static_cast<EngineKind>(i)).pages.empty());
}
