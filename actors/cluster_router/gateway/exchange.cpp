#include "actors/cluster_router/gateway/exchange.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "actors/cluster_router/gateway/gateway.hpp"
#include "actors/cluster_router/gateway/relay_heads.hpp"
#include "actors/cluster_router/http/errors.hpp"
#include "actors/cluster_router/http/line.hpp"
#include "actors/cluster_router/tracing/context.hpp"
#include "messages/base/described.hpp"

namespace signalbox::gateway {
namespace {

using schema::AttemptEnd;

constexpr std::size_t max_error_body_bytes = 64 * 1024;

AttemptEnd after_first_byte(net::CallFault fault) {
  if (fault == net::CallFault::gap_timeout) return AttemptEnd::gap_timeout;
  return fault == net::CallFault::total_timeout ? AttemptEnd::total_timeout : AttemptEnd::broken_stream;
}

}  // namespace

Exchange::Exchange(Gateway& gateway, net::ResponseWriterPtr writer, const Reading& reading,
                   std::shared_ptr<ApiKeyState> key)
    : gateway_(gateway),
      writer_(std::move(writer)),
      snapshot_(gateway.snapshot_text_),
      key_(std::move(key)),
      model_(reading.shape.model.str()),
      meter_(gateway.meter_of(reading)),
      began_(gateway.loop_.now()),
      prompt_tokens_(reading.facts.estimated_prompt_tokens()),
      charged_tokens_(key_ ? charge_of(reading.facts) : 0),
      endpoint_(reading.endpoint),
      one_stream_(reading.shape.stream && reading.shape.choices == 1 && reading.unpacked.empty()) {
  writer_->observe(this);
  ++meter_.requests;
  ++meter_.running;
}

Exchange::~Exchange() {
  if (writer_) writer_->observe(nullptr);
}

void Exchange::start(routing::Ticket ticket, const routing::DecisionId& decision,
                     const routing::Verdict& verdict) {
  ticket_ = ticket;
  decision_ = decision;
  request_id_ = request_id_of(writer_->request().head.fields, routing::to_string(decision));
  trace_ = gateway_.sampler_.begin(writer_->request().head.fields, decision, gateway_.loop_.now());
  if (trace_) describe_trace();
  act(verdict);
}

void Exchange::describe_trace() {
  constexpr std::size_t longest_path = 256;
  const http::RequestHead& head = writer_->request().head;
  trace_->method = head.method;
  trace_->path = head.path().substr(0, longest_path);
  trace_->request_id = request_id_;
  trace_->endpoint = endpoint_;
}

void Exchange::act(const routing::Verdict& verdict) {
  if (const auto* to = std::get_if<routing::Forward>(&verdict)) return forward(*to);
  if (const auto* no = std::get_if<routing::Refuse>(&verdict)) return refuse(*no);
  call_.reset();
  phase_ = Phase::waiting;
  gateway_.pump_soon();
}

void Exchange::forward(const routing::Forward& to) {
  // The connection that reported a failure may still be on the stack, and it refers to its pool.
  if (engine_) gateway_.loop_.later([keep = std::move(engine_)] {});
  engine_ = gateway_.engines_.at(to.engine);
  call_.reset();
  hedge_.reset();
  engine_index_ = to.engine;
  attempt_ = attempts_ = to.attempt;
  phase_ = Phase::calling;
  ++gateway_.counters_.attempts;
  if (engine_ == nullptr || engine_->upstream == nullptr)
    return act(gateway_.dispatcher_.failed(ticket_, AttemptEnd::connect_error, gateway_.loop_.now()));
  call_ = start_call(*engine_, to, *this);
  if (to.hedge > Duration::zero())
    hedge_ = std::make_shared<Hedge>(gateway_.loop_, to.hedge, endpoint_, static_cast<HedgeObserver&>(*this));
}

std::unique_ptr<net::Call> Exchange::start_call(Engine& engine, const routing::Forward& to,
                                                net::CallObserver& observer) {
  const net::Request& request = writer_->request();
  const std::string_view body = continuing() ? continuation_->body() : std::string_view(request.body);
  const net::CallLimits limits{to.connect, to.first_byte, to.gap, to.total};
  const Passage passage{body.size(), request_id_, key_ ? Credentials::of_router : Credentials::of_engine,
                        tracing::span_of(decision_, to.attempt),
                        trace_ && trace_->parent.empty() ? std::string_view(trace_->id) : std::string_view()};
  return engine.upstream->start(engine_request(request.head, engine.door, passage), body, limits, observer);
}

void Exchange::on_answer(const http::ResponseHead& head) {
  answer_ = answer_start(head, endpoint_);
  if (answer_.status < 400) return void(phase_ = Phase::answered);
  if (!settle_hedge(answer_.status) || !judge(answer_.status)) return;
  phase_ = Phase::error_answer;
  if (!continuing()) return;
  finished(AttemptEnd::succeeded);
  break_off(502, "stream_incomplete", "the engine broke, and another one would not go on with its stream");
}

/// Shows the dispatcher the answer's status; false when it wants another answer instead.
bool Exchange::judge(std::uint16_t status) {
  const auto verdict = gateway_.dispatcher_.head(ticket_, status, answer_.retry_after, gateway_.loop_.now());
  if (!verdict) return true;
  act(*verdict);
  gateway_.place_freed();
  return false;
}

void Exchange::on_body(std::string_view bytes) {
  if (phase_ == Phase::error_answer) {
    if (error_body_.size() < max_error_body_bytes)
      error_body_.append(bytes.substr(0, max_error_body_bytes - error_body_.size()));
    return;
  }
  if (phase_ == Phase::answered && !begin_relay()) return;
  if (request_held_ && call_->sent() && !continuation_) {
    request_held_ = false;
    writer_->release_request();
  }
  if (continuation_) return relay_events(bytes);
  answer_.watch.read(bytes);
  gateway_.counters_.body_bytes_to_clients += bytes.size();
  if (!writer_->write(bytes)) call_->pause();
}

/// The first byte of the body is here: from now on the client has this answer. False when the dispatcher wants another.
bool Exchange::begin_relay() {
  if (continuing()) return relay_rest();
  lose_hedge();
  if (!judge(answer_.status)) return false;
  first_byte_ = gateway_.loop_.now();
  gateway_.dispatcher_.first_byte(ticket_, first_byte_);
  phase_ = Phase::relaying;
  prepare_continuation();
  answer_.lines += own_lines();
  writer_->begin_with_lines(answer_.status, answer_.lines,
                            answer_.has_length ? std::optional(answer_.length) : std::nullopt, answer_.dated);
  answer_.lines = {};
  return true;
}

void Exchange::on_writable() {
  if (call_) call_->resume();
}

void Exchange::on_end() {
  if (call_ && call_->restarted()) ++gateway_.counters_.stale_connections;
  if (phase_ == Phase::error_answer) return end_error_answer();
  if (phase_ == Phase::answered && !begin_relay()) return;
  answer_.watch.finish();
  if (answer_.watch.kind() == http::AnswerWatch::Kind::sse && !answer_.watch.said_end()) {
    if (continue_elsewhere(AttemptEnd::broken_stream)) return;
    finished(AttemptEnd::broken_stream);
    return break_off(502, "stream_incomplete",
                     "the engine ended its stream without saying that it is complete");
  }
  if (continuation_ && !continuation_->rest().empty()) writer_->write(continuation_->rest());
  ++gateway_.counters_.answers_completed;
  finished(AttemptEnd::succeeded);
  writer_->finish();
  over(Ending::good);
}

void Exchange::end_error_answer() {
  finished(AttemptEnd::succeeded);
  const std::string body = http::normalise_error(answer_.status, error_body_);
  answer_.lines += "content-type: application/json\r\n" + own_lines();
  writer_->begin_with_lines(answer_.status, answer_.lines, body.size());
  writer_->write(body);
  writer_->finish();
  over(Ending::engine_error);
}

void Exchange::on_fault(net::CallFault fault) {
  // After a stream has said that it is complete, an engine that hangs up spares itself the last chunk only.
  if (phase_ == Phase::relaying && fault == net::CallFault::truncated && !answer_.has_length &&
      answer_.watch.complete() && answer_.watch.at_boundary())
    return on_end();
  if (call_ && call_->restarted()) ++gateway_.counters_.stale_connections;
  if (fault == net::CallFault::untrusted || fault == net::CallFault::handshake_failed)
    gateway_.problems_.insert_or_assign(
        engine_->door.name, routing::EngineProblem{engine_->door.name, fault == net::CallFault::untrusted,
                                                   engine_->upstream->problem()});
  if (hedge_ && hedge_->open() && phase_ != Phase::relaying && phase_ != Phase::error_answer)
    return promote_hedge(before_first_byte(fault), 0);
  switch (phase_) {
    case Phase::error_answer: return end_error_answer();
    case Phase::relaying:
      if (continue_elsewhere(after_first_byte(fault))) return;
      finished(after_first_byte(fault));
      return break_off(502, net::to_string(fault), net::describe(fault));
    default:
      act(gateway_.dispatcher_.failed(ticket_, before_first_byte(fault), gateway_.loop_.now()));
      return gateway_.place_freed();
  }
}

/// Ends an answer that the client has a part of: an error event in a stream, else a broken connection.
void Exchange::break_off(int status, std::string_view reason, std::string_view message) {
  ++gateway_.counters_.streams_broken;
  if (continuing() || (answer_.watch.kind() == http::AnswerWatch::Kind::sse && !answer_.has_length)) {
    const std::string_view end_of_cut_event = continuation_ || answer_.watch.at_boundary() ? "" : "\n\n";
    writer_->write(std::string(end_of_cut_event).append(http::openai_error_event(status, reason, message)));
    writer_->finish();
  } else {
    writer_->abort();
  }
  over(Ending::broken);
}

void Exchange::refuse(const routing::Refuse& no) {
  if (continuing()) {
    settle(tokens_so_far());
    return break_off(no.status, name_of(no.reason), sentence_of(no.reason));
  }
  ++gateway_.counters_.refused;
  settle(0);
  const bool unknown_model = no.reason == schema::RefuseReason::unknown_model;
  std::string lines = "content-type: application/json\r\n" + own_lines();
  fmt::format_to(std::back_inserter(lines), "x-signalbox-reason: {}\r\n", name_of(no.reason));
  if (no.retry_after > Duration::zero())
    fmt::format_to(std::back_inserter(lines), "retry-after: {}\r\n",
                   std::chrono::ceil<std::chrono::seconds>(no.retry_after).count());
  const std::string body =
      unknown_model ? http::openai_error(404, "model_not_found",
                                         fmt::format("The model '{}' does not exist", model_), "model")
                    : http::openai_error(no.status, name_of(no.reason),
                                         fmt::format("The request was refused: {}", sentence_of(no.reason)));
  writer_->begin_with_lines(no.status, lines, body.size());
  writer_->write(body);
  writer_->finish();
  over(Ending::refused);
}

void Exchange::finished(AttemptEnd end) {
  routing::Usage usage;
  usage.output_tokens = answer_.watch.events();
  if (const auto& told = answer_.watch.usage()) {
    usage.prompt_tokens = told->prompt_tokens;
    usage.output_tokens = told->completion_tokens;
    if (told->has_cached) usage.cached_tokens = told->cached_tokens;
  }
  if (continuing()) {  // what the first engine said was prompt to the second
    const std::uint64_t given = continuation_->given_tokens();
    usage.output_tokens += given;
    usage.prompt_tokens -= std::min(usage.prompt_tokens, given);
    usage.cached_tokens.reset();
  }
  if (trace_ && answer_.watch.usage())
    trace_->input_tokens = usage.prompt_tokens, trace_->output_tokens = usage.output_tokens;
  settle(end == AttemptEnd::succeeded && answer_.status >= 400 && !continuing()
             ? 0
             : (usage.prompt_tokens > 0 ? static_cast<double>(usage.prompt_tokens) : prompt_tokens_) +
                   static_cast<double>(usage.output_tokens));
  gateway_.counters_.events += answer_.watch.events();
  if (end == AttemptEnd::succeeded && answer_.status < 400) measure(usage);
  gateway_.dispatcher_.finished(ticket_, end, usage, gateway_.loop_.now());
  gateway_.place_freed();
}

void Exchange::measure(const routing::Usage& usage) {
  const Instant now = gateway_.loop_.now();
  meter_.duration_s.add(to_seconds(now - began_));
  if (answer_.watch.usage()) {
    meter_.input_tokens.add(static_cast<double>(usage.prompt_tokens));
    meter_.output_tokens.add(static_cast<double>(usage.output_tokens));
  }
  if (answer_.watch.kind() != http::AnswerWatch::Kind::sse) return;
  meter_.first_token_s.add(to_seconds(first_byte_ - began_));
  if (usage.output_tokens > 1)
    meter_.per_token_s.add(to_seconds(now - first_byte_) / static_cast<double>(usage.output_tokens - 1));
}

/// Of a stream that has not come to its end, with what another engine said of it before.
double Exchange::tokens_so_far() const {
  return prompt_tokens_ +
         static_cast<double>(continuing() ? continuation_->tokens() : answer_.watch.events());
}

/// Corrects what the key was charged when the request came.
void Exchange::settle(double tokens) {
  if (key_) key_->tokens.correct(tokens - charged_tokens_, gateway_.loop_.now());
  charged_tokens_ = tokens;
}

void Exchange::on_client_gone() {
  const bool streaming = phase_ == Phase::relaying || continuing();
  settle(streaming ? tokens_so_far() : 0);
  ++(streaming ? gateway_.counters_.clients_left_streaming : gateway_.counters_.clients_left_waiting);
  gateway_.dispatcher_.client_left(ticket_, gateway_.loop_.now());
  gateway_.place_freed();
  over(Ending::client_left);
}

void Exchange::end_by_drain() {
  gateway_.dispatcher_.client_left(ticket_, gateway_.loop_.now());
  if (phase_ == Phase::relaying) {
    settle(tokens_so_far());
    return break_off(503, "draining", "the router is being stopped");
  }
  refuse({schema::RefuseReason::draining, 503, 1s});
}

void Exchange::over(Ending ending) {
  phase_ = Phase::over;
  --meter_.running;
  ++meter_.ended[static_cast<std::size_t>(ending)];
  call_.reset();
  hedge_.reset();
  writer_->observe(nullptr);
  if (trace_) {
    trace_->attempts = attempts_;
    trace_->error = error_type(ending);
    gateway_.ended_traces_.push_back(*std::move(trace_));
  }
  gateway_.end(*this);
}

std::string Exchange::own_lines() const {
  std::string out;
  out.reserve(256);
  http::append_line(out, "x-request-id", request_id_);
  http::append_line(out, "x-signalbox-decision", routing::to_string(decision_));
  http::append_line(out, "x-signalbox-snapshot", *snapshot_);
  http::append_line(out, "x-signalbox-attempts", attempts_);
  if (engine_ && gateway_.options_.hide_engines)
    http::append_line(out, "x-signalbox-engine", engine_index_.at());
  else if (engine_)
    http::append_line(out, "x-signalbox-engine", engine_->door.name.str());
  // Of an answer's own attempt; who traces finds the engine's span below it.
  if (request_held_)
    if (const auto parent = tracing::traceparent_of(writer_->request().head.fields))
      http::append_line(out, "traceresponse",
                        tracing::traceparent_with(*parent, tracing::span_of(decision_, attempt_)));
  if (key_) out += rate_limit_lines(*key_, gateway_.loop_.now());
  return out;
}

}  // namespace signalbox::gateway
