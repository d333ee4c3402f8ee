// SGLang's /metrics (--enable-metrics). Some builds write sglang_ for sglang:.
#include "actors/engine_proxy/adapters/names.hpp"

namespace signalbox::engine_proxy {

namespace {

Status read_metrics(std::string_view body, Reading& out) {
  const auto metrics = Exposition::parse(body);
  if (!metrics) return tl::unexpected(metrics.error());
  Facts facts(*metrics, out);
  out.running = facts.sum({"sglang:num_running_reqs", "sglang_num_running_reqs"});
  out.waiting = facts.sum({"sglang:num_queue_reqs", "sglang_num_queue_reqs"});
  out.kv_usage = facts.mean({"sglang:token_usage", "sglang_token_usage"});
  out.kv_capacity_tokens = facts.sum({"sglang:max_total_num_tokens", "sglang_max_total_num_tokens"});
  out.prompt_tokens_total = facts.sum({"sglang:prompt_tokens_total", "sglang_prompt_tokens_total"});
  out.cached_tokens_total = facts.sum({"sglang:cached_tokens_total", "sglang_cached_tokens_total"});
  out.output_tokens_total = facts.sum({"sglang:generation_tokens_total", "sglang_generation_tokens_total"});
  out.requests_total = facts.sum({"sglang:num_requests_total", "sglang_num_requests_total"});
  out.preemptions_total = facts.sum({"sglang:num_retracted_reqs", "sglang_num_retracted_reqs"});
  out.token_time =
      facts.histogram({"sglang:inter_token_latency_seconds", "sglang_inter_token_latency_seconds"});
  out.first_token_time =
      facts.histogram({"sglang:time_to_first_token_seconds", "sglang_time_to_first_token_seconds"});
  out.start_time_s = facts.least({"process_start_time_seconds"});
  out.block_tokens = facts.label("sglang:cache_config_info", "page_size");
  return {};
}

constexpr Page pages[] = {{"/metrics", true, read_metrics}};

}  // namespace

const Adapter detail::sglang{EngineKind::sglang, pages};

}  // namespace signalbox::engine_proxy
