#include "tools/engine_sim/session.hpp"

#include <array>

#include "tools/engine_sim/api/text.hpp"

namespace signalbox::engine_sim {

std::string_view EngineServer::Session::text_until(std::uint32_t tokens) const {
  return std::string_view(answer).substr(0, std::size_t{tokens} * bytes_per_token);
}

void EngineServer::Session::token(std::uint32_t n) {
  if (!ask.stream) return;
  if (!writer->head_sent()) {
    const std::array fields{http::Field{"content-type", "text/event-stream; charset=utf-8"},
                            http::Field{"cache-control", "no-cache"},
                            http::Field{"x-engine-sim", server_.options_.name}};
    writer->begin(200, fields);
    if (const std::string start = stream_start(head); !start.empty()) writer->write(start);
  }
  writer->write(stream_text(head, text_until(n).substr(text_until(n - 1).size())));
}

void EngineServer::Session::finish(FinishReason reason, const Usage& usage) {
  if (ask.stream) {
    writer->write(
        stream_end(head, text_until(usage.completion_tokens), to_string(reason), usage, ask.include_usage));
    writer->finish();
    return;
  }
  const std::array fields{http::Field{"content-type", "application/json"},
                          http::Field{"x-engine-sim", server_.options_.name}};
  writer->respond(200, fields,
                  ask.endpoint == Endpoint::embedding
                      ? embeddings_answer(ask, usage.prompt_tokens, server_.options_.seed)
                      : whole_answer(head, text_until(usage.completion_tokens), to_string(reason), usage));
}

}  // namespace signalbox::engine_sim
