// llama.cpp's server: /metrics (--metrics), /slots for the size of its batch and memory, /props where it hides them. Its metrics have no start
// time and no cache counters.
#include <simdjson.h>

#include "actors/engine_proxy/adapters/names.hpp"

namespace signalbox::engine_proxy {

namespace {

Status read_metrics(std::string_view body, Reading& out) {
  const auto metrics = Exposition::parse(body);
  if (!metrics) return tl::unexpected(metrics.error());
  Facts facts(*metrics, out);
  out.running = facts.sum({"llamacpp:requests_processing"});
  out.waiting = facts.sum({"llamacpp:requests_deferred"});
  out.kv_usage = facts.mean({"llamacpp:kv_cache_usage_ratio"});
  out.prompt_tokens_total = facts.sum({"llamacpp:prompt_tokens_total"});
  out.output_tokens_total = facts.sum({"llamacpp:tokens_predicted_total"});
  const auto seconds = facts.sum({"llamacpp:tokens_predicted_seconds_total"});
  if (seconds && out.output_tokens_total) out.token_time = Accumulated{*seconds, *out.output_tokens_total};
  return {};
}

constexpr std::size_t max_json_bytes = 8u << 20;

/// Runs `read` over the parsed page; whatever the parser throws is the page's fault.
template <class F>
Status with_json(std::string_view body, F&& read) {
  if (body.size() > max_json_bytes) return fail(ErrorKind::too_large, "the page is too long");
  simdjson::dom::parser parser;
  simdjson::dom::element page;
  if (const auto error = parser.parse(body.data(), body.size()).get(page))
    return invalid(std::string("no JSON: ") + simdjson::error_message(error));
  read(page);
  return {};
}

std::optional<double> number(const simdjson::dom::element& in, std::string_view pointer) {
  double value = 0;
  return in.at_pointer(pointer).get(value) ? std::nullopt : std::optional(value);
}

/// One object a slot. The memory of the batch is the sum of the slots' contexts.
Status read_slots(std::string_view body, Reading& out) {
  return with_json(body, [&](const simdjson::dom::element& page) {
    simdjson::dom::array slots;
    if (page.get(slots)) return;
    double count = 0, context = 0;
    for (const auto slot : slots) {
      context += number(slot, "/n_ctx").value_or(0);
      ++count;
    }
    out.names.emplace_back("/slots");
    out.max_batch = count;
    if (context > 0) out.kv_capacity_tokens = context;
  });
}

Status read_props(std::string_view body, Reading& out) {
  return with_json(body, [&](const simdjson::dom::element& page) {
    const auto slots = number(page, "/total_slots");
    const auto context = number(page, "/default_generation_settings/n_ctx");
    if (slots) out.max_batch = slots, out.names.emplace_back("/props");
    if (slots && context && !out.kv_capacity_tokens) out.kv_capacity_tokens = *slots * *context;
  });
}

constexpr Page pages[] = {
    {"/metrics", true, read_metrics}, {"/slots", false, read_slots}, {"/props", false, read_props}};

}  // namespace

const Adapter detail::llamacpp{EngineKind::llamacpp, pages};

}  // namespace signalbox::engine_proxy
