#include "tools/engine_sim/api/metrics.hpp"

#include <fmt/format.h>

namespace signalbox::engine_sim {
namespace {

struct Page {
  std::string labels;  // model_name and engine
  std::string text = {};

  void family(std::string_view name, std::string_view type, std::string_view help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void one(std::string_view name, std::string_view type, std::string_view help, double value) {
    family(name, type, help);
    text += fmt::format("{}{{{}}} {}\n", name, labels, value);
  }
  void gauge(std::string_view name, std::string_view help, double value) { one(name, "gauge", help, value); }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    one(name, "counter", help, static_cast<double>(value));
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& h) {
    family(name, "histogram", help);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < h.bounds().size(); ++i) {
      below += h.in_bucket(i);
      text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, h.bounds()[i], below);
    }
    text += fmt::format("{0}_bucket{{{1},le=\"+Inf\"}} {2}\n{0}_sum{{{1}}} {3}\n{0}_count{{{1}}} {2}\n", name,
                        labels, h.count(), h.sum());
  }
};

}  // namespace

std::string metrics_text(const Engine& engine, std::string_view model, double started_s) {
  const Counters& c = engine.counters();
  const Load load = engine.load();
  Page page{.labels = fmt::format("engine=\"0\",model_name=\"{}\"", model)};
  page.gauge("vllm:num_requests_running", "Requests in the batch.", load.running);
  page.gauge("vllm:num_requests_waiting", "Requests that wait for the batch.", load.waiting);
  page.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1.",
             static_cast<double>(load.kv_used_blocks) / load.kv_blocks);
  page.counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.", c.prefix_queries);
  page.counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache.", c.prefix_hits);
  page.counter("vllm:num_preemptions_total", "Requests put back because memory ran out.", c.preemptions);
  page.counter("vllm:prompt_tokens_total", "Prompt tokens of requests whose prompt is computed.",
               c.prompt_tokens);
  page.counter("vllm:prompt_tokens_cached_total", "Prompt tokens that the cache held.",
               c.prompt_tokens_cached);
  page.counter("vllm:generation_tokens_total", "Tokens generated.", c.generation_tokens);
  page.family("vllm:request_success_total", "counter", "Requests by the reason of their end.");
  for (const auto& [reason, count] :
       {std::pair("stop", c.finished_stop), std::pair("length", c.finished_length),
        std::pair("abort", c.finished_cancelled)})
    page.text += fmt::format("vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", page.labels,
                             reason, count);
  page.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", c.first_token_s);
  page.histogram("vllm:inter_token_latency_seconds", "From one token to the next.", c.inter_token_s);
  page.histogram("vllm:iteration_tokens_total", "Tokens of a step: prompts completed in it, and output.",
                 c.iteration_tokens);
  page.histogram("vllm:request_queue_time_seconds", "From arrival to the batch.", c.queue_s);
  page.histogram("vllm:e2e_request_latency_seconds", "From arrival to the end.", c.e2e_s);
  page.family("vllm:cache_config_info", "gauge", "The KV cache's size.");
  page.text += fmt::format("vllm:cache_config_info{{block_size=\"{}\",num_gpu_blocks=\"{}\"}} 1\n",
                           engine.options().block_tokens, load.kv_blocks);
  page.family("process_start_time_seconds", "gauge", "Start of the process, seconds since 1970.");
  page.text += fmt::format("process_start_time_seconds {:.3f}\n", started_s);
  return page.text;
}

}  // namespace signalbox::engine_sim
