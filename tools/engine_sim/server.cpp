#include "tools/engine_sim/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "actors/cluster_router/http/errors.hpp"
#include "tools/engine_sim/api/metrics.hpp"
#include "tools/engine_sim/api/text.hpp"
#include "tools/engine_sim/session.hpp"

namespace signalbox::engine_sim {
namespace {

using net::ResponseWriter;
using net::ResponseWriterPtr;

double wall_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void respond_json(ResponseWriter& writer, int status, std::string_view body) {
  const std::array fields{http::Field{"content-type", "application/json"}};
  writer.respond(status, fields, body);
}

void answer_error(ResponseWriter& writer, int status, std::string_view code, std::string_view message,
                  std::string_view param = {}) {
  respond_json(writer, status, http::openai_error(status, code, message, param));
}

}  // namespace

EngineServer::EngineServer(net::Loop& loop, ServerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      engine_(options_.engine, options_.seed),
      rng_(Rng(options_.seed).split(1)),
      timer_(loop, [this] { advance(); }),
      started_(loop.now()),
      started_wall_s_(wall_s()) {}

EngineServer::~EngineServer() = default;

Status EngineServer::publish_kv_events() {
  return options_.kv.events.empty() ? Status{} : kv_.start(options_.kv);
}

Instant EngineServer::engine_now() const {
  return instant_at(from_seconds(to_seconds(loop_.now() - started_) * options_.time_scale));
}

void EngineServer::on_request(ResponseWriterPtr writer) {
  advance();
  const Path path = writer->request().head.path();
  if (path == "/admin/faults") return serve_admin(*writer);
  if (fails_by_fault(writer)) return;
  if (path == "/reset_prefix_cache" && writer->request().head.method == "POST")
    return reset_prefix_cache(*writer);
  const auto endpoint = endpoint_of(path);
  if (!endpoint) return serve_page(*writer, path);
  if (writer->request().head.method != "POST")
    return answer_error(*writer, 405, "method_not_allowed", fmt::format("{} takes POST", path));
  serve_inference(std::move(writer), *endpoint);
}

void EngineServer::serve_admin(ResponseWriter& writer) {
  const auto& request = writer.request();
  if (request.head.method == "POST") {
    if (const Status changed = change_faults(faults_, request.body); !changed)
      return answer_error(writer, 400, "invalid_fault", changed.error().text(), changed.error().where);
    engine_.set_faults(faults_.machine(), engine_now());
    arm();
  } else if (request.head.method != "GET") {
    return answer_error(writer, 405, "method_not_allowed", "/admin/faults takes GET and POST");
  }
  respond_json(writer, 200, faults_json(faults_));
}

/// As vLLM's development servers do it.
void EngineServer::reset_prefix_cache(ResponseWriter& writer) {
  engine_.reset_prefix_cache();
  kv_.cleared();
  kv_.publish(wall_s(), faults_.kv_strange, faults_.kv_lost);
  writer.respond(200, {}, {});
}

bool EngineServer::fails_by_fault(ResponseWriterPtr& writer) {
  if (faults_.refuse) return writer.reset(), true;  // an unanswered writer resets its connection
  if (faults_.hang) return hold(std::move(writer)), true;
  if (faults_.status == 0) return false;
  answer_error(*writer, faults_.status, "injected_fault", fmt::format("{}: injected fault", options_.name));
  return true;
}

// What hangs is a session that the machine never hears of.
void EngineServer::hold(ResponseWriterPtr writer) {
  const RequestId id = next_id_++;
  writer->release_request();
  sessions_.emplace(id, std::make_unique<Session>(*this, id, std::move(writer)));
}

void EngineServer::serve_page(ResponseWriter& writer, Path path) {
  const bool known = path == "/health" || path == "/metrics" || path == "/v1/models";
  if (!known) return answer_error(writer, 404, "not_found", fmt::format("there is no {}", path));
  if (writer.request().head.method != "GET" && writer.request().head.method != "HEAD")
    return answer_error(writer, 405, "method_not_allowed", fmt::format("{} takes GET", path));
  if (path == "/health") return writer.respond(200, {}, {});
  if (path == "/metrics") {
    const std::array fields{http::Field{"content-type", "text/plain; version=0.0.4; charset=utf-8"}};
    return writer.respond(200, fields, metrics_text(engine_, options_.models.front(), started_wall_s_));
  }
  const std::uint64_t room = std::uint64_t{options_.engine.kv_blocks} * options_.engine.block_tokens;
  respond_json(writer, 200, models_answer(options_.models, static_cast<std::int64_t>(started_wall_s_), room));
}

bool EngineServer::serves(std::string_view model) const {
  return std::find(options_.models.begin(), options_.models.end(), model) != options_.models.end();
}

void EngineServer::serve_inference(ResponseWriterPtr writer, Endpoint endpoint) {
  if (rng_.chance(faults_.error_ratio))
    return answer_error(*writer, 500, "injected_fault", fmt::format("{}: injected fault", options_.name));
  auto ask = read_ask(endpoint, writer->request().body);
  if (!ask) return answer_error(*writer, 400, "invalid_request", ask.error().text(), ask.error().where);
  if (!serves(ask->model))
    return answer_error(*writer, 404, "model_not_found",
                        fmt::format("The model `{}` does not exist.", ask->model), "model");
  submit(std::move(writer), std::move(*ask));
}

void EngineServer::submit(ResponseWriterPtr writer, Ask ask) {
  const RequestId id = next_id_++;
  const bool embedding = ask.endpoint == Endpoint::embedding;
  Request request{.id = id};
  if (embedding)
    for (const std::string& input : ask.inputs) request.prompt_tokens += count_tokens(input);
  else
    request.prompt_tokens = count_tokens(ask.prompt + ask.said);
  // An answer that was begun elsewhere goes on as if it had been made here, and ends where it would have.
  const auto said_tokens = static_cast<std::uint32_t>(ask.said.size() / bytes_per_token);
  const std::uint32_t natural =
      std::max(1u, options_.output_tokens - std::min(options_.output_tokens, said_tokens));
  request.max_output_tokens = ask.max_tokens.value_or(natural + 1);
  request.output_tokens = embedding ? 0 : ask.ignore_eos ? request.max_output_tokens : natural;
  const std::uint32_t answer_tokens = std::min(request.output_tokens, request.max_output_tokens);

  const std::uint64_t cache_seed = hash_text(ask.model, hash_text(ask.cache_salt, 0));
  const std::uint64_t answer_seed = hash_text(ask.prompt, cache_seed ^ options_.seed);
  std::string text = std::move(ask.prompt) + ask.said;
  const std::size_t prompt_bytes = text.size();
  // One token more than will be said: the prompt's last token may be short, and the last block reach beyond the answer.
  for (std::uint32_t n = 0; n <= answer_tokens && !embedding; ++n)
    text += answer_token(answer_seed, said_tokens + n);
  request.blocks = hash_blocks(text, options_.engine.block_tokens, cache_seed);

  const std::uint32_t prompt_tokens = request.prompt_tokens;
  if (const Admission admission = engine_.submit(std::move(request), engine_now());
      admission != Admission::accepted)
    return refuse(*writer, admission);

  auto session = std::make_unique<Session>(*this, id, std::move(writer));
  session->writer->release_request();
  session->answer = text.substr(prompt_bytes);
  session->prompt_tokens = prompt_tokens;
  constexpr std::array prefixes{"chatcmpl", "cmpl", "embd", "resp"};
  session->head = {
      .endpoint = ask.endpoint,
      .id = fmt::format("{}-{}-{}", prefixes[static_cast<std::size_t>(ask.endpoint)], options_.name, id),
      .model = ask.model,
      .created_s = static_cast<std::int64_t>(wall_s())};
  session->ask = std::move(ask);
  if (rng_.chance(faults_.die_mid_stream)) session->dies_at_token = 1 + answer_tokens / 2;
  sessions_.emplace(id, std::move(session));
  arm();
}

void EngineServer::refuse(ResponseWriter& writer, Admission why) {
  switch (why) {
    case Admission::too_long:
      return answer_error(
          writer, 400, "context_length_exceeded",
          fmt::format("prompt and answer do not fit into {} tokens of KV memory",
                      std::uint64_t{options_.engine.kv_blocks} * options_.engine.block_tokens));
    case Admission::empty: return answer_error(writer, 400, "invalid_request", "the prompt is empty");
    default:
      return answer_error(writer, 503, "engine_overloaded",
                          fmt::format("{} requests wait already", engine_.load().waiting));
  }
}

void EngineServer::advance() {
  events_.clear();
  engine_.on_wake(engine_now(), events_);
  for (const Event& event : events_) tell(event);
  kv_.publish(wall_s(), faults_.kv_strange, faults_.kv_lost);
  arm();
}

void EngineServer::arm() {
  const Instant next = engine_.next_wake();
  if (next == end_of_time) return timer_.disarm();
  timer_.arm(started_ + from_seconds(to_seconds(next - instant_at(0ns)) / options_.time_scale) + 1ns);
}

void EngineServer::tell(const Event& event) {
  if (event.kind == EventKind::block_stored)
    return kv_.stored(event.block, event.parent, options_.engine.block_tokens);
  if (event.kind == EventKind::block_removed) return kv_.removed(event.block);
  const auto found = sessions_.find(event.request);
  if (found == sessions_.end()) return;  // ended earlier among these events
  Session& session = *found->second;
  switch (event.kind) {
    case EventKind::first_token:
    case EventKind::token:
      if (session.dies_at_token == event.tokens) {
        engine_.cancel(session.id, engine_now());
        session.writer->abort();
        return end(session);
      }
      return session.token(event.tokens);
    case EventKind::finished:
      session.finish(event.reason, {.prompt_tokens = session.prompt_tokens,
                                    .cached_tokens = event.cached_tokens,
                                    .completion_tokens = event.tokens});
      return end(session);
    default: return;
  }
}

void EngineServer::end(Session& session) {
  const auto found = sessions_.find(session.id);
  session.writer->observe(nullptr);
  loop_.dispose(std::move(found->second));
  sessions_.erase(found);
}

void EngineServer::client_gone(Session& session) {
  engine_.cancel(session.id, engine_now());
  end(session);
  arm();
}

}  // namespace signalbox::engine_sim
