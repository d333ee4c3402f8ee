#include "actors/cluster_router/pages.hpp"

#include <fmt/format.h>

#include <chrono>

#include "actors/cluster_router/http/errors.hpp"
#include "actors/cluster_router/records/record_file.hpp"
#include "messages/base/described.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::cluster_router {
namespace {

using Answer = kit::OperatorAnswer;
using gateway::Gateway;
using gateway::Gateways;

constexpr std::string_view json = "application/json";

Answer problem(int status, std::string_view text) { return {status, "text/plain", std::string(text) + "\n"}; }
Answer too_late() { return problem(503, "the event loop did not answer in time"); }

/// What it refers to has been replaced so often since that the loop no longer knows which engine that was; the file does.
bool lacks_names(const schema::DecisionRecord& record) {
  return record.engine.valid() && record.engine_name.empty();
}

/// From the loop's memory, else from the ring file.
Answer explain(Gateways& gateways, const std::string& text, const std::string& ring_file) {
  const auto id = routing::parse_decision_id(text);
  if (!id) return problem(400, "that is no decision's id");
  const auto loop = static_cast<std::uint32_t>(id->count % gateways.loops());
  const auto record = gateways.ask(
      loop, [id](Gateway& g) { return g.dispatcher().record(*id, kit::monotonic_now()); }, question_limit);
  if (!record) return too_late();
  if (!*record || lacks_names(**record)) {
    const auto found = RecordFile::find(ring_file, *id);
    if (*record && (!found || !*found))
      return {200, std::string(json), codec::to_json(schema::Message(**record)) + "\n"};
    if (!found)
      return problem(503, fmt::format("it is not in memory, and the ring file cannot be read: {}",
                                      found.error().text()));
    if (!*found) return problem(404, "this router does not hold that decision, or no longer");
    const auto filed = routing::as_message((*found)->record, (*found)->names ? &*(*found)->names : nullptr);
    return {200, std::string(json), codec::to_json(schema::Message(filed)) + "\n"};
  }
  return {200, std::string(json), codec::to_json(schema::Message(**record)) + "\n"};
}

/// The plan that a decision read, as it came: kind routing_snapshot, without its envelope.
Answer plan_of(Gateways& gateways, const std::string& text) {
  const auto id = routing::parse_decision_id(text);
  if (!id) return problem(400, "that is no decision's id");
  const auto loop = static_cast<std::uint32_t>(id->count % gateways.loops());
  const auto plan = gateways.ask(
      loop, [id](Gateway& g) { return g.dispatcher().plan_of(*id); }, question_limit);
  if (!plan) return too_late();
  if (!*plan) return problem(404, "this router does not hold that decision or its plan, or no longer");
  const codec::Bytes body = codec::encode(schema::Message(**plan));
  return {200, "application/msgpack", std::string(body.begin(), body.end())};
}

Answer show_snapshot(Gateways& gateways) {
  using Found = std::shared_ptr<const schema::RoutingSnapshot>;
  const auto snapshot = gateways.ask(
      0, [](Gateway& g) { return g.dispatcher().view() ? g.dispatcher().view()->snapshot : Found(); },
      question_limit);
  if (!snapshot) return too_late();
  if (!*snapshot) return problem(404, "no snapshot is in force");
  return {200, std::string(json), codec::to_json(schema::Message(**snapshot)) + "\n"};
}

/// A request that another proxy holds, copied for the loop's thread.
struct Question {
  std::string path;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;  ///< then the bytes that simdjson reads past its end
  std::size_t body_bytes = 0;
};

struct Routed {
  schema::DecisionRecord record;
  std::string url;  ///< of the chosen engine; empty: none
};

tl::expected<Routed, gateway::Misfit> decide(Gateway& gateway, const Question& question) {
  net::Request request;
  request.head.method = "POST";
  request.head.target = question.path;
  for (const auto& [name, value] : question.fields) request.head.fields.push_back({name, value});
  request.body = std::string_view(question.body).substr(0, question.body_bytes);
  auto record = gateway.would_decide(request);
  if (!record) return tl::unexpected(std::move(record.error()));
  Routed out{*std::move(record), {}};
  const auto& view = gateway.dispatcher().view();
  if (view && out.record.engine.valid() && out.record.engine.at() < view->table->engines.size())
    out.url = view->table->engines[out.record.engine.at()].url;
  return out;
}

/// The decision alone. The request is sent as it would go to an engine: its fields, its body, its path after /v1/route (a chat
/// completion if there is none). The answer's status is 200, or the one that a client would get.
Answer would_route(Gateways& gateways, const kit::OperatorRequest& asked) {
  constexpr std::size_t json_padding_bytes = 64;
  auto question = std::make_shared<Question>();
  question->path = asked.rest.empty() ? "/v1/chat/completions" : asked.rest;
  question->fields = asked.fields;
  question->body = asked.body;
  question->body_bytes = question->body.size();
  question->body.append(json_padding_bytes, '\0');
  const auto routed = gateways.ask(
      0, [question](Gateway& g) { return decide(g, *question); }, question_limit);
  if (!routed) return too_late();
  if (!*routed) {
    const gateway::Misfit& misfit = routed->error();
    return {misfit.status, std::string(json),
            http::openai_error(misfit.status, misfit.reason, misfit.message, misfit.param) + "\n"};
  }
  const Routed& answer = **routed;
  const schema::DecisionRecord& record = answer.record;
  const bool refused = record.refused != schema::RefuseReason::none;
  return {refused ? static_cast<int>(record.status) : 200, std::string(json),
          fmt::format("{{\"engine\":{},\"url\":{},\"reason\":{},\"record\":{}}}\n",
                      http::json_string(record.engine_name.str()), http::json_string(answer.url),
                      http::json_string(name_of(record.refused)), codec::to_json(schema::Message(record)))};
}

}  // namespace

void add_pages(kit::Process& process, const std::shared_ptr<Gateways>& gateways,
               const std::string& ring_file) {
  process.add_page({"GET", "/explain/", [gateways, ring_file](const auto& asked) {
                      return explain(*gateways, asked.rest, ring_file);
                    }});
  process.add_page(
      {"GET", "/plan/", [gateways](const auto& asked) { return plan_of(*gateways, asked.rest); }});
  process.add_page({"GET", "/snapshot", [gateways](const auto&) { return show_snapshot(*gateways); }});
  process.add_page(
      {"POST", "/v1/route", [gateways](const auto& asked) { return would_route(*gateways, asked); }});
}

}  // namespace signalbox::cluster_router
