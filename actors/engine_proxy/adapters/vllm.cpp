// vLLM's /metrics; the names of its V0 engine are accepted where they differ. engine-sim speaks the same.
#include "actors/engine_proxy/adapters/names.hpp"

namespace signalbox::engine_proxy {

namespace {

Status read_metrics(std::string_view body, Reading& out) {
  const auto metrics = Exposition::parse(body);
  if (!metrics) return tl::unexpected(metrics.error());
  Facts facts(*metrics, out);
  out.running = facts.sum({"vllm:num_requests_running"});
  out.waiting = facts.sum({"vllm:num_requests_waiting"});
  out.kv_usage = facts.mean({"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"});
  out.prompt_tokens_total = facts.sum({"vllm:prompt_tokens_total"});
  out.cached_tokens_total = facts.sum({"vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total",
                                       "vllm:gpu_prefix_cache_hits_total"});
  out.output_tokens_total = facts.sum({"vllm:generation_tokens_total"});
  out.requests_total = facts.sum({"vllm:request_success_total"});
  out.preemptions_total = facts.sum({"vllm:num_preemptions_total"});
  out.token_time =
      facts.histogram({"vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"});
  if (const auto steps = facts.histogram({"vllm:iteration_tokens_total"})) out.steps_total = steps->count;
  out.first_token_time = facts.histogram({"vllm:time_to_first_token_seconds"});
  out.start_time_s = facts.least({"process_start_time_seconds"});
  out.block_tokens = facts.label("vllm:cache_config_info", "block_size");
  const auto blocks = facts.label("vllm:cache_config_info", "num_gpu_blocks");
  if (blocks && out.block_tokens) out.kv_capacity_tokens = *blocks * *out.block_tokens;
  return {};
}

constexpr Page pages[] = {{"/metrics", true, read_metrics}};

}  // namespace

const Adapter detail::vllm{EngineKind::vllm, pages};
const Adapter detail::sim{EngineKind::sim, pages};

}  // namespace signalbox::engine_proxy
