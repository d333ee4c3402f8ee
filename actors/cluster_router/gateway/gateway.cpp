#include "actors/cluster_router/gateway/gateway.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "actors/cluster_router/gateway/exchange.hpp"
#include "actors/cluster_router/gateway/relay_heads.hpp"
#include "actors/cluster_router/http/errors.hpp"
#include "actors/cluster_router/http/unpack.hpp"

namespace signalbox::gateway {
namespace {

constexpr std::string_view models_path = "/v1/models";
constexpr Duration handover_time = 500ms;  // a handshake over a long way
constexpr Duration drain_look = 5ms;
constexpr std::string_view methods = "GET, HEAD, POST, OPTIONS";

void respond_json(net::ResponseWriter& writer, int status, std::string_view body) {
  const std::array fields{http::Field{"content-type", "application/json"}};
  writer.respond(status, fields, body);
}

std::string model_json(const ModelName& name) {
  return fmt::format(R"({{"id":{},"object":"model","created":0,"owned_by":"signalbox"}})",
                     http::json_string(name.str()));
}

/// %2F and the like as the bytes that they stand for; others stay.
std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += coded ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (coded) i += 2;
  }
  return out;
}

void respond_misfit(net::ResponseWriter& writer, const Misfit& misfit) {
  const std::array fields{http::Field{"content-type", "application/json"},
                          http::Field{"x-signalbox-reason", misfit.reason}};
  if (misfit.status == 415) writer.add_lines(fmt::format("accept-encoding: {}\r\n", http::known_codings));
  writer.respond(misfit.status, fields,
                 http::openai_error(misfit.status, misfit.reason, misfit.message, misfit.param));
}

}  // namespace

GatewayCounters& GatewayCounters::operator+=(const GatewayCounters& other) {
  using Field = std::uint64_t GatewayCounters::*;
  using G = GatewayCounters;
  constexpr std::array fields{Field{&G::requests},
                              &G::misfits,
                              &G::refused,
                              &G::malformed,
                              &G::unauthorized,
                              &G::rate_limited,
                              &G::attempts,
                              &G::hedges,
                              &G::hedges_won,
                              &G::stale_connections,
                              &G::answers_completed,
                              &G::streams_broken,
                              &G::streams_continued,
                              &G::clients_left_waiting,
                              &G::clients_left_streaming,
                              &G::events,
                              &G::body_bytes_to_clients};
  static_assert(sizeof(GatewayCounters) == fields.size() * sizeof(std::uint64_t));
  for (const Field field : fields) this->*field += other.*field;
  return *this;
}

Gateway::Gateway(net::Loop& loop, GatewayOptions options)
    : loop_(loop),
      options_(std::move(options)),
      dispatcher_(options_.dispatcher),
      reader_(options_.reader),
      cors_(options_.cors_origins),
      engines_(loop),
      snapshot_text_(std::make_shared<const std::string>("none")),
      continuations_{options_.continuation_bytes},
      sampler_(options_.traces),
      wake_(loop, [this] { pump(); }),
      handed_over_(loop, [this] { stop_taking(); }),
      grace_(loop, [this] { end_grace(); }),
      drained_(loop, [this] { check_drained(); }),
      server_(loop, *this, options_.server) {}

Gateway::~Gateway() {
  for (auto& exchange : exchanges_)
    if (exchange) exchange->end_by_drain();
}

Status Gateway::listen(const net::Address& address, bool share_port) {
  if (auto bound = server_.bind(address, share_port); !bound) return bound;
  return open();
}

Status Gateway::open() {
  auto opened = server_.open();
  if (opened && options_.on_open) std::exchange(options_.on_open, nullptr)();
  return opened;
}

void Gateway::adopt(Routes routes) {
  engines_.adopt(std::move(routes.doors));
  const auto& snapshot = routes.view->snapshot;
  snapshot_text_ =
      std::make_shared<const std::string>(snapshot ? fmt::format("{}", snapshot->version) : "none");
  dispatcher_.adopt(std::move(routes.view), loop_.now());
  open();
  pump_soon();
}

void Gateway::on_refused(int, std::string_view) { ++counters_.malformed; }

void Gateway::on_request(net::ResponseWriterPtr writer) {
  const http::RequestHead& head = writer->request().head;
  const std::string_view path = head.path();
  if (std::string lines = cors_.answer_lines(head.fields); !lines.empty() && head.method != "OPTIONS")
    writer->add_lines(lines);
  std::shared_ptr<ApiKeyState> key;
  if (api_keys_ && head.method != "OPTIONS") {
    const std::string_view sent = key_of(head.fields);
    if (!sent.empty()) key = api_keys_->find(sent);
    if (!key) return refuse_stranger(*writer, !sent.empty());
  }
  if (head.method == "POST") return route(std::move(writer), std::move(key));
  add_request_id(*writer);
  if (head.method == "OPTIONS") return answer_options(*writer);
  if (head.method == "GET" || head.method == "HEAD") {
    if (path == models_path) return list_models(*writer);
    if (path.starts_with(models_path) && path[models_path.size()] == '/')
      return show_model(*writer, percent_decoded(path.substr(models_path.size() + 1)));
    return net::respond_error(*writer, 404, "unknown_path",
                              "there is nothing at this path; POST a request, or GET /v1/models");
  }
  const std::array fields{http::Field{"content-type", "application/json"}, http::Field{"allow", methods},
                          http::Field{"x-signalbox-reason", "method_not_allowed"}};
  writer->respond(405, fields,
                  http::openai_error(405, "method_not_allowed", fmt::format("only {} are served", methods)));
}

void Gateway::answer_options(net::ResponseWriter& writer) const {
  const http::Fields& asked = writer.request().head.fields;
  if (http::find(asked, "access-control-request-method")) writer.add_lines(cors_.preflight_lines(asked));
  const std::array fields{http::Field{"allow", methods}};
  writer.respond(204, fields, {});
}

/// For answers that no decision stands behind.
void Gateway::add_request_id(net::ResponseWriter& writer) {
  const std::string made = fmt::format("{:x}-{}", options_.dispatcher.seed & 0xffff'ffff, ++own_answers_);
  writer.add_lines(fmt::format("x-request-id: {}\r\n", request_id_of(writer.request().head.fields, made)));
}

void Gateway::refuse_stranger(net::ResponseWriter& writer, bool has_key) {
  ++counters_.unauthorized;
  add_request_id(writer);
  const std::string_view reason = has_key ? "invalid_api_key" : "missing_api_key";
  const std::array fields{http::Field{"content-type", "application/json"},
                          http::Field{"x-signalbox-reason", reason},
                          http::Field{"www-authenticate", "Bearer"}};
  writer.respond(401, fields,
                 http::openai_error(401, reason,
                                    has_key ? "The API key is not known here"
                                            : "No API key was sent: give it as 'Authorization: Bearer KEY'"));
}

void Gateway::refuse_share(net::ResponseWriter& writer, const ApiKeyState& key, const Grant& grant) {
  ++counters_.rate_limited;
  add_request_id(writer);
  const Duration wait = std::max<Duration>(grant.retry_after, 1ms);
  const std::string lines = fmt::format(
      "content-type: application/json\r\nx-signalbox-reason: rate_limit_{}\r\nretry-after: "
      "{}\r\nretry-after-ms: {}\r\n{}",
      grant.short_of, std::chrono::ceil<std::chrono::seconds>(wait).count(),
      std::chrono::ceil<std::chrono::milliseconds>(wait).count(), rate_limit_lines(key, loop_.now()));
  const double limit = grant.short_of == "tokens" ? key.key.tokens_per_minute : key.key.requests_per_minute;
  const std::string body = http::openai_error(
      429, "rate_limit_exceeded",
      fmt::format("The API key '{}' may use {:.0f} {} per minute and has used them; try again in {:.3f} s",
                  key.key.name, limit, grant.short_of, to_seconds(wait)));
  writer.begin_with_lines(429, lines, body.size());
  writer.write(body);
  writer.finish();
}

void Gateway::route(net::ResponseWriterPtr writer, std::shared_ptr<ApiKeyState> key) {
  ++counters_.requests;
  Reading reading;
  const Caller caller = key ? Caller{key->key.tenant, key->key.most} : Caller{};
  if (const auto read = reader_.read(writer->request(), reading, caller); !read) {
    ++counters_.misfits;
    add_request_id(*writer);
    return respond_misfit(*writer, read.error());
  }
  if (key)
    if (const Grant grant = take_share(*key, charge_of(reading.facts), loop_.now()); !grant.granted)
      return refuse_share(*writer, *key, grant);
  auto exchange = std::make_unique<Exchange>(*this, std::move(writer), reading, std::move(key));
  const routing::Begun begun = dispatcher_.begin(std::move(reading.facts), loop_.now());
  Exchange& started = *exchange;
  if (std::holds_alternative<routing::Refuse>(begun.verdict))
    loop_.dispose(std::move(exchange));
  else
    take(std::move(exchange), begun.ticket);
  started.start(begun.ticket, begun.decision, begun.verdict);
}

Meter& Gateway::meter_of(const Reading& reading) {
  const auto& view = dispatcher_.view();
  const bool known = view && view->policy->find_model(reading.shape.model.str());
  return meters_.of(known ? std::string_view(reading.shape.model.str()) : std::string_view(),
                    reading.endpoint);
}

tl::expected<schema::DecisionRecord, Misfit> Gateway::would_decide(const net::Request& request) {
  Reading reading;
  if (auto read = reader_.read(request, reading); !read) return tl::unexpected(std::move(read.error()));
  return dispatcher_.would_decide(reading.facts, loop_.now());
}

void Gateway::list_models(net::ResponseWriter& writer) const {
  std::string body = R"({"object":"list","data":[)";
  if (const auto& view = dispatcher_.view())
    for (const policy::ModelRow& model : view->policy->models)
      (body += body.back() == '[' ? "" : ",") += model_json(model.name);
  respond_json(writer, 200, body + "]}");
}

void Gateway::show_model(net::ResponseWriter& writer, std::string_view name) const {
  const auto& view = dispatcher_.view();
  if (view && view->policy->find_model(name)) return respond_json(writer, 200, model_json(ModelName(name)));
  respond_misfit(writer,
                 {404, "model_not_found", fmt::format("The model '{}' does not exist", name), "model"});
}

std::vector<routing::EngineProblem> Gateway::take_problems() {
  std::vector<routing::EngineProblem> out;
  for (auto& [engine, problem] : problems_) out.push_back(std::move(problem));
  problems_.clear();
  return out;
}

std::vector<tracing::EndedTrace> Gateway::take_traces() {
  std::vector<tracing::EndedTrace> out;
  const auto& view = dispatcher_.view();
  for (tracing::Trace& trace : ended_traces_) {
    auto record = dispatcher_.record(trace.decision, loop_.now());
    if (!record) {  // its place in the ring was taken since
      ++forgotten_traces_;
      continue;
    }
    const bool indexed = view && view->table->content == record->table;
    out.push_back({std::move(trace), *std::move(record), indexed ? view->table : nullptr});
  }
  ended_traces_.clear();
  return out;
}

void Gateway::take(std::unique_ptr<Exchange> exchange, routing::Ticket ticket) {
  if (ticket.slot >= exchanges_.size()) exchanges_.resize(ticket.slot + 1);
  exchanges_[ticket.slot] = std::move(exchange);
}

void Gateway::end(Exchange& exchange) {
  const std::uint32_t slot = exchange.ticket().slot;
  if (slot < exchanges_.size() && exchanges_[slot].get() == &exchange)
    loop_.dispose(std::move(exchanges_[slot]));
  if (on_drained_) drained_.arm(loop_.now());
}

void Gateway::pump_soon() {
  if (dispatcher_.waiting() > 0) wake_.arm(loop_.now());
}

/// An attempt ended here: somebody who waits, on this loop or another, may have its place.
void Gateway::place_freed() {
  pump_soon();
  if (const std::uint64_t others = dispatcher_.waiting_elsewhere()) options_.wake_loops(others);
}

void Gateway::pump() {
  while (const auto ready = dispatcher_.next_ready(loop_.now()))
    if (ready->ticket.slot < exchanges_.size() && exchanges_[ready->ticket.slot])
      exchanges_[ready->ticket.slot]->act(ready->verdict);
  const Instant wake = dispatcher_.next_wake();
  wake == end_of_time ? wake_.disarm() : wake_.arm(wake);
}

bool Gateway::drain(Duration grace, std::function<void()> done, std::optional<bool> with_first) {
  on_drained_ = std::move(done);
  grace_.arm_in(grace);
  // A connection whose handshake began here is still completed here: those are waited for and served.
  const bool by_itself = server_.hand_over();
  const bool handed_over = with_first.value_or(by_itself);
  handed_over ? handed_over_.arm_in(std::min(grace, handover_time)) : stop_taking();
  return handed_over;
}

void Gateway::stop_taking() {
  dispatcher_.drain_and_refuse();
  server_.drain();
  drained_.arm(loop_.now());
}

void Gateway::end_grace() {
  if (!server_.draining()) stop_taking();
  for (std::size_t i = 0; i < exchanges_.size(); ++i)
    if (exchanges_[i]) exchanges_[i]->end_by_drain();
}

void Gateway::check_drained() {
  if (!on_drained_ || !server_.draining()) return;
  if (dispatcher_.open() > 0 || server_.busy()) return drained_.arm_in(drain_look);
  grace_.disarm();
  std::exchange(on_drained_, nullptr)();
}

}  // namespace signalbox::gateway
