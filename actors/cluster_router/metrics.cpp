#include "actors/cluster_router/metrics.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <iterator>

namespace signalbox::cluster_router {
namespace {

using gateway::Ending;
using gateway::Histogram;
using gateway::Meter;

/// A label's value, as the text form wants it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    put("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  template <class Value>
  void sample(std::string_view name, std::string_view labels, Value value) {
    labels.empty() ? put("{} {}\n", name, value) : put("{}{{{}}} {}\n", name, labels, value);
  }
  void single(std::string_view name, std::string_view type, std::string_view help, double value) {
    family(name, type, help);
    sample(name, {}, value);
  }
  void histogram(std::string_view name, std::string_view labels, const Histogram& histogram) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < histogram.bounds().size(); ++i)
      put("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, histogram.bounds()[i], sum += histogram.count(i));
    sum += histogram.count(histogram.bounds().size());
    put("{0}_bucket{{{1},le=\"+Inf\"}} {2}\n{0}_sum{{{1}}} {3}\n{0}_count{{{1}}} {2}\n", name, labels, sum,
        histogram.sum());
  }
  std::string take() { return std::move(out_); }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  std::string out_;
};

std::string gen_ai_labels(const Meter& meter) {
  return fmt::format("gen_ai_operation_name=\"{}\",gen_ai_request_model=\"{}\",signalbox_endpoint=\"{}\"",
                     http::gen_ai_operation(meter.endpoint), escaped(meter.model),
                     http::to_string(meter.endpoint));
}

void put_counters(Text& text, const Readout& r, std::uint64_t late_batches) {
  const gateway::GatewayCounters& c = r.counters;
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    text.family(name, "counter", help);
    text.sample(name, {}, value);
  };
  counter("signalbox_router_requests_total", "Requests that were to be routed.", c.requests);
  counter("signalbox_router_misfits_total", "Requests that could not be read or classified.", c.misfits);
  counter("signalbox_router_refused_total", "Requests refused by policy or for want of engines.", c.refused);
  counter("signalbox_router_malformed_total", "Requests refused by the HTTP server.", c.malformed);
  counter("signalbox_router_unauthorized_total", "Requests without a known API key.", c.unauthorized);
  counter("signalbox_router_rate_limited_total", "Requests whose API key's share was used up.",
          c.rate_limited);
  counter("signalbox_router_attempts_total", "Calls to engines.", c.attempts);
  counter("signalbox_router_hedges_total", "Calls to a second engine because the first one was late.",
          c.hedges);
  counter("signalbox_router_hedges_won_total", "Second engines that answered first.", c.hedges_won);
  counter("signalbox_router_stale_connections_total", "Pooled connections that turned out to be closed.",
          c.stale_connections);
  counter("signalbox_router_answers_total", "Answers completed.", c.answers_completed);
  counter("signalbox_router_streams_continued_total",
          "Streams whose engine broke that went on at another one.", c.streams_continued);
  counter("signalbox_router_streams_broken_total", "Answers that ended after their first byte by a fault.",
          c.streams_broken);
  text.family("signalbox_router_clients_left_total", "counter",
              "Clients that left before their answer's end.");
  text.sample("signalbox_router_clients_left_total", "phase=\"waiting\"", c.clients_left_waiting);
  text.sample("signalbox_router_clients_left_total", "phase=\"streaming\"", c.clients_left_streaming);
  counter("signalbox_router_events_total", "Server-sent events relayed.", c.events);
  counter("signalbox_router_body_bytes_total", "Bytes of answers' bodies relayed.", c.body_bytes_to_clients);
  counter("signalbox_router_batches_late_total", "Batches that waited because the actor was behind.",
          late_batches);
  counter("signalbox_router_connections_accepted_total", "Client connections accepted.", r.server.accepted);
  counter("signalbox_router_tls_handshakes_total", "TLS handshakes with clients done.", r.server.handshakes);
  counter("signalbox_router_tls_handshakes_failed_total",
          "Connections that ended without their TLS handshake.", r.server.handshakes_failed);
  counter("signalbox_router_in_the_clear_total", "Clients that did not speak TLS where it is spoken.",
          r.server.in_the_clear);
  text.single("signalbox_router_connections", "gauge", "Client connections open.",
              static_cast<double>(r.connections));
  text.family("signalbox_router_loop_connections", "gauge",
              "Client connections open, by the event loop that serves them.");
  for (std::size_t i = 0; i < r.loop_connections.size(); ++i)
    text.sample("signalbox_router_loop_connections", fmt::format("loop=\"{}\"", i), r.loop_connections[i]);
  text.single("signalbox_router_open_requests", "gauge", "Requests that wait or are being answered.",
              static_cast<double>(r.open));
  text.single("signalbox_router_queued_requests", "gauge", "Of these, waiting for a place.",
              static_cast<double>(r.queued));
}

void put_gen_ai(Text& text, const std::vector<Meter>& meters) {
  const auto histograms = [&](std::string_view name, std::string_view help, const Histogram Meter::*member) {
    text.family(name, "histogram", help);
    for (const Meter& meter : meters) text.histogram(name, gen_ai_labels(meter), meter.*member);
  };
  histograms("gen_ai_server_request_duration_seconds",
             "From a request's arrival to the end of its good answer.", &Meter::duration_s);
  histograms("gen_ai_server_time_to_first_token_seconds",
             "From a request's arrival to its stream's first byte.", &Meter::first_token_s);
  histograms("gen_ai_server_time_per_output_token_seconds", "Between a stream's tokens, after the first.",
             &Meter::per_token_s);
  constexpr std::string_view usage = "gen_ai_client_token_usage";
  text.family(usage, "histogram", "Tokens of a request and its answer, where the engine told them.");
  for (const Meter& meter : meters) {
    text.histogram(usage, gen_ai_labels(meter) + ",gen_ai_token_type=\"input\"", meter.input_tokens);
    text.histogram(usage, gen_ai_labels(meter) + ",gen_ai_token_type=\"output\"", meter.output_tokens);
  }
}

/// Under the names of the Gateway API inference extension, whose dashboards and autoscalers then work here too.
void put_inference(Text& text, const Readout& r, const std::string& fleet) {
  const auto label = [](const Meter& meter) {
    return fmt::format("model_name=\"{0}\",target_model_name=\"{0}\",signalbox_endpoint=\"{1}\"",
                       escaped(meter.model), http::to_string(meter.endpoint));
  };
  text.family("inference_objective_request_total", "counter", "Requests by model.");
  for (const Meter& m : r.meters) text.sample("inference_objective_request_total", label(m), m.requests);
  text.family("inference_objective_request_error_total", "counter", "Requests that ended badly, by model.");
  for (const Meter& m : r.meters)
    for (std::size_t i = 1; i < gateway::endings; ++i)
      text.sample("inference_objective_request_error_total",
                  fmt::format("{},error_code=\"{}\"", label(m), error_type(static_cast<Ending>(i))),
                  m.ended[i]);
  text.family("inference_objective_running_requests", "gauge", "Requests under way, by model.");
  for (const Meter& m : r.meters) text.sample("inference_objective_running_requests", label(m), m.running);
  const std::string pool = fmt::format("name=\"{}\"", escaped(fleet));
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    text.family(name, "gauge", help);
    text.sample(name, pool, value);
  };
  gauge("inference_pool_ready_pods", "Engines that may get new requests.", static_cast<double>(r.pool.ready));
  if (r.pool.waiting_known)
    gauge("inference_pool_average_queue_size", "Mean requests waiting in an engine.", r.pool.mean_waiting);
  if (r.pool.kv_known)
    gauge("inference_pool_average_kv_cache_utilization", "Mean share of KV memory in use.",
          r.pool.mean_kv_used);
}

PoolFacts pool_of(const routing::View& view) {
  PoolFacts out;
  std::size_t waiting = 0, kv = 0;
  for (const routing::EngineFacts& engine : view.engines) {
    out.ready += engine.state == HealthState::ready ? 1 : 0;
    if (!std::isnan(engine.waiting)) out.mean_waiting += engine.waiting, ++waiting;
    if (!std::isnan(engine.kv_used) && engine.kv_tokens > 0)
      out.mean_kv_used += engine.kv_used / engine.kv_tokens, ++kv;
  }
  out.waiting_known = waiting > 0, out.kv_known = kv > 0;
  if (waiting > 0) out.mean_waiting /= static_cast<double>(waiting);
  if (kv > 0) out.mean_kv_used /= static_cast<double>(kv);
  return out;
}

}  // namespace

Readout read_out(const gateway::Gateway& gateway) {
  Readout out;
  out.counters = gateway.counters();
  out.server = gateway.server_counters();
  out.connections = gateway.client_connections();
  out.loop_connections = {out.connections};
  out.open = gateway.dispatcher().open();
  out.queued = gateway.dispatcher().waiting();
  out.meters = gateway.meters().all();
  if (const auto& view = gateway.dispatcher().view()) out.pool = pool_of(*view);
  return out;
}

Readout summed(const std::vector<Readout>& each) {
  Readout out = each.front();
  for (std::size_t i = 1; i < each.size(); ++i) {
    const Readout& more = each[i];
    out.counters += more.counters;
    out.server.accepted += more.server.accepted;
    out.server.handshakes += more.server.handshakes;
    out.server.handshakes_failed += more.server.handshakes_failed;
    out.server.in_the_clear += more.server.in_the_clear;
    out.loop_connections.push_back(more.connections);
    out.connections += more.connections, out.open += more.open, out.queued += more.queued;
    out.meters.insert(out.meters.end(), more.meters.begin(), more.meters.end());
  }
  out.meters = gateway::summed(std::move(out.meters));
  return out;
}

std::string metrics_text(const Readout& readout, const std::string& fleet, std::uint64_t late_batches,
                         const FilingCounts& filing) {
  Text text;
  put_counters(text, readout, late_batches);
  text.single("signalbox_router_decisions_filed_total", "counter",
              "Records of decisions written to the ring file.", static_cast<double>(filing.filed));
  text.single("signalbox_router_decisions_lost_total", "counter",
              "Records of decisions that were not written: the file failed, or its writer was behind.",
              static_cast<double>(filing.lost));
  put_gen_ai(text, readout.meters);
  put_inference(text, readout, fleet);
  return text.take();
}

std::string trace_metrics_text(const tracing::OutboxCounters& counters, std::uint64_t lost) {
  Text text;
  constexpr std::string_view traces = "signalbox_router_traces_total";
  text.family(traces, "counter", "Requests that were traced, by what became of their traces.");
  text.sample(traces, "outcome=\"exported\"", counters.exported);
  text.sample(traces, "outcome=\"dropped\"", counters.dropped + lost);
  text.sample(traces, "outcome=\"refused\"", counters.refused);
  text.family("signalbox_router_trace_export_failures_total", "counter",
              "Requests to the collector of traces that failed.");
  text.sample("signalbox_router_trace_export_failures_total", {}, counters.failures);
  return text.take();
}

}  // namespace signalbox::cluster_router
