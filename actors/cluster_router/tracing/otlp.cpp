#include "actors/cluster_router/tracing/otlp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "actors/cluster_router/tracing/context.hpp"
#include "messages/base/described.hpp"
#include "messages/base/json_text.hpp"

namespace signalbox::tracing {
namespace {

using schema::AttemptEnd;
using schema::AttemptRow;
using schema::CandidateRow;

// Of the protocol's enumerations Span.SpanKind and Status.StatusCode.
constexpr int server = 2, client = 3, failed = 2;
constexpr std::size_t most_candidates = 8;

/// A list of the protocol's KeyValues, written as it grows. Keys are literals of this file, and need no escapes.
class Attributes {
 public:
  Attributes() { out_.reserve(2048); }

  /// A text that is empty is not said.
  Attributes& text(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    open(key, "stringValue");
    append_json_string(out_, value);
    return close();
  }
  /// 64-bit integers are texts in protobuf's JSON.
  Attributes& count(std::string_view key, std::uint64_t value) {
    open(key, "intValue");
    const fmt::format_int digits(value);
    out_.append("\"").append(digits.data(), digits.size()).append("\"");
    return close();
  }
  Attributes& number(std::string_view key, double value) {
    open(key, "doubleValue");
    append_number(value);
    return close();
  }
  Attributes& flag(std::string_view key, bool value) {
    open(key, "boolValue");
    out_ += value ? "true" : "false";
    return close();
  }
  Attributes& texts(std::string_view key, const std::vector<std::string>& values) {
    return list(key, "stringValue", values, [this](const std::string& v) { append_json_string(out_, v); });
  }
  Attributes& numbers(std::string_view key, const std::vector<double>& values) {
    return list(key, "doubleValue", values, [this](double v) { append_number(v); });
  }
  /// The members of the list, without its brackets.
  const std::string& members() const { return out_; }

 private:
  void open(std::string_view key, std::string_view kind) {
    if (!out_.empty()) out_ += ',';
    out_.append(R"({"key":")").append(key).append(R"(","value":{")").append(kind).append(R"(":)");
  }
  Attributes& close() {
    out_ += "}}";
    return *this;
  }
  void append_number(double value) {
    fmt::format_to(std::back_inserter(out_), "{}", std::isfinite(value) ? value : 0);
  }
  template <class Values, class Append>
  Attributes& list(std::string_view key, std::string_view kind, const Values& values, const Append& append) {
    open(key, "arrayValue");
    out_ += R"({"values":[)";
    for (const auto& value : values) {
      if (out_.back() == '}') out_ += ',';
      out_.append(R"({")").append(kind).append(R"(":)");
      append(value);
      out_ += '}';
    }
    out_ += "]}";
    return close();
  }
  std::string out_;
};

/// One trace's spans; times of its record are turned into Unix time.
class Spans {
 public:
  Spans(const EndedTrace& ended, Duration unix_offset)
      : trace_(ended.trace), record_(ended.record), table_(ended.table.get()), offset_(unix_offset) {}

  std::string json() const {
    std::string out = request();
    for (std::size_t i = 0; i < record_.attempts.size(); ++i) out += "," + attempt(i);
    return out;
  }

 private:
  std::string engine_name(EngineIndex engine) const {
    if (table_ != nullptr && engine.valid() && engine.at() < table_->engines.size())
      return table_->engines[engine.at()].name.str();
    return engine == record_.engine ? record_.engine_name.str() : std::string();
  }

  /// As the protocol has times: a text of nanoseconds.
  std::string time(Duration since_arrival) const {
    return fmt::format("\"{}\"", (record_.arrived + offset_ + since_arrival).count());
  }

  std::string request() const {
    Attributes out;
    out.text("http.request.method", trace_.method).text("url.path", trace_.path);
    if (record_.status != 0) out.count("http.response.status_code", record_.status);
    out.text("gen_ai.operation.name", http::gen_ai_operation(trace_.endpoint))
        .text("gen_ai.request.model", record_.model.str())
        .text("error.type", trace_.error)
        .text("signalbox.decision", routing::to_string(trace_.decision))
        .text("signalbox.request_id", trace_.request_id)
        .text("signalbox.class", record_.class_name)
        .text("signalbox.rule", record_.rule)
        .flag("signalbox.degraded", record_.degraded)
        .text("signalbox.snapshot", fmt::format("{}", record_.snapshot))
        .number("signalbox.snapshot_age_s", to_seconds(record_.snapshot_age))
        .number("signalbox.prompt_tokens_estimated", record_.prompt_tokens)
        .text("signalbox.engine", record_.engine_name.str())
        .count("signalbox.attempts", trace_.attempts);
    if (record_.refused != schema::RefuseReason::none)
      out.text("signalbox.refused", name_of(record_.refused));
    tokens(out);
    candidates(out);
    return span(span_of(trace_.decision, 0), trace_.parent, fmt::format("{} {}", trace_.method, trace_.path),
                server, Duration::zero(), record_.took, out, trace_.error);
  }

  std::string attempt(std::size_t row) const {
    const AttemptRow& a = record_.attempts[row];
    // The first and the last are kept.
    const std::uint32_t number =
        row == 0 ? 1 : std::max(trace_.attempts, static_cast<std::uint32_t>(row + 1));
    const std::string_view error = a.end == AttemptEnd::succeeded ? std::string_view() : name_of(a.end);
    Attributes out;
    out.text("gen_ai.operation.name", http::gen_ai_operation(trace_.endpoint))
        .text("gen_ai.request.model", record_.model.str())
        .text("error.type", error)
        .text("signalbox.engine", engine_name(a.engine))
        .count("signalbox.attempt", number);
    if (table_ != nullptr && a.engine.valid() && a.engine.at() < table_->engines.size())
      out.text("signalbox.engine_url", table_->engines[a.engine.at()].url);
    if (a.status != 0) out.count("http.response.status_code", a.status);
    if (a.engine == record_.engine) tokens(out);
    std::string events;
    if (a.first_byte > Duration::zero())
      events = fmt::format(R"({{"timeUnixNano":{},"name":"first byte"}})", time(a.first_byte));
    const Duration ended = a.ended > Duration::zero() ? a.ended : record_.took;
    return span(span_of(trace_.decision, number), fmt::format("{:016x}", span_of(trace_.decision, 0)),
                fmt::format("{} {}", http::gen_ai_operation(trace_.endpoint), record_.model), client, a.began,
                ended, out, error, events);
  }

  void tokens(Attributes& out) const {
    if (trace_.input_tokens > 0) out.count("gen_ai.usage.input_tokens", trace_.input_tokens);
    if (trace_.output_tokens > 0) out.count("gen_ai.usage.output_tokens", trace_.output_tokens);
  }

  /// Of the last decision: those that were weighed, the chosen one first, and what each would have cost.
  void candidates(Attributes& out) const {
    std::vector<std::string> engines, fates;
    std::vector<double> costs, cached;
    for (const CandidateRow& c : record_.candidates) {
      if (engines.size() == most_candidates) break;
      if (c.total_s <= 0) continue;
      engines.push_back(engine_name(c.engine));
      fates.emplace_back(name_of(c.fate));
      costs.push_back(c.total_s);
      cached.push_back(c.matched_tokens);
      if (c.fate != schema::CandidateFate::chosen) continue;
      out.number("signalbox.cost.network_s", c.network_s)
          .number("signalbox.cost.queue_s", c.queue_s)
          .number("signalbox.cost.prefill_s", c.prefill_s)
          .number("signalbox.cost.decode_s", c.decode_s)
          .number("signalbox.cost.price_s", c.price_s)
          .number("signalbox.cached_tokens", c.matched_tokens);
    }
    if (engines.empty()) return;
    out.texts("signalbox.candidates.engines", engines)
        .texts("signalbox.candidates.fates", fates)
        .numbers("signalbox.candidates.cost_s", costs)
        .numbers("signalbox.candidates.cached_tokens", cached);
  }

  std::string span(std::uint64_t id, std::string_view parent, std::string_view name, int kind, Duration began,
                   Duration ended, const Attributes& attributes, std::string_view error,
                   std::string_view events = {}) const {
    return fmt::format(
        R"({{"traceId":"{}","spanId":"{:016x}",{}"name":{},"kind":{},"startTimeUnixNano":{},"endTimeUnixNano":{},)"
        R"("attributes":[{}],"events":[{}],"status":{}}})",
        trace_.id, id, parent.empty() ? "" : fmt::format(R"("parentSpanId":"{}",)", parent),
        json_string(name), kind, time(began), time(std::max(began, ended)), attributes.members(), events,
        error.empty() ? "{}" : fmt::format(R"({{"code":{},"message":{}}})", failed, json_string(error)));
  }

  const Trace& trace_;
  const schema::DecisionRecord& record_;
  const schema::FleetTable* table_;
  Duration offset_;
};

}  // namespace

std::string otlp_json(std::span<const EndedTrace> traces, const Resource& resource, Duration unix_offset) {
  Attributes who;
  who.text("service.name", "signalbox-router")
      .text("service.namespace", resource.fleet)
      .text("service.instance.id", resource.router.str())
      .text("signalbox.cluster", resource.cluster.str());
  std::string out = fmt::format(
      R"({{"resourceSpans":[{{"resource":{{"attributes":[{}]}},"scopeSpans":[{{"scope":{{"name":"signalbox"}},"spans":[)",
      who.members());
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (i > 0) out += ',';
    out += Spans(traces[i], unix_offset).json();
  }
  return out += "]}]}]}";
}

}  // namespace signalbox::tracing
