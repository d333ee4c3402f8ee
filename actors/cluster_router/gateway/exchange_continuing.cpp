// An exchange and a stream that goes on at another engine, where its policy lets it.
#include <fmt/format.h>

#include "actors/cluster_router/gateway/exchange.hpp"
#include "actors/cluster_router/gateway/gateway.hpp"

namespace signalbox::gateway {

using schema::AttemptEnd;

/// At a stream's first byte: from now on its text is kept, if it could be continued. The request is kept with it.
void Exchange::prepare_continuation() {
  if (!one_stream_ || !request_held_ || gateway_.continuations_.limit == 0) return;
  if (answer_.status != 200 || answer_.watch.kind() != http::AnswerWatch::Kind::sse || answer_.has_length)
    return;
  const std::string_view body = writer_->request().body;
  if (!gateway_.dispatcher_.may_continue(ticket_) || body.size() > Continuation::most_body_bytes) return;
  if (!http::can_be_continued(body, endpoint_)) return;
  auto kept = std::make_unique<Continuation>(gateway_.continuations_, endpoint_, body.size());
  if (kept->possible()) continuation_ = std::move(kept);
}

/// The bytes of an answer that is watched: only whole events reach the client.
void Exchange::relay_events(std::string_view bytes) {
  answer_.watch.read(bytes);
  const std::string_view out = continuation_->take(bytes);
  gateway_.counters_.body_bytes_to_clients += out.size();
  if (!out.empty() && !writer_->write(out)) call_->pause();
  // What cannot be continued any more passes as it comes from now on, and its request need not be kept.
  if (!continuation_->possible() && !continuation_->started() && continuation_->rest().empty())
    continuation_.reset();
}

/// The engine broke. False: nobody goes on with it, and the client has to be told.
bool Exchange::continue_elsewhere(AttemptEnd end) {
  if (!continuation_ || !continuation_->possible() || end == AttemptEnd::total_timeout) return false;
  auto asked = continuation_->request_for_rest(writer_->request().body);
  if (!asked) return false;
  const Instant now = gateway_.loop_.now();
  const auto to = gateway_.dispatcher_.continue_stream(ticket_, end, continuation_->tokens(),
                                                       endpoint_ == http::Endpoint::chat, now);
  if (!to) return false;
  ++gateway_.counters_.streams_continued;
  gateway_.counters_.events += answer_.watch.events();
  const auto engine = gateway_.engines_.at(to->engine);
  const std::string who = gateway_.options_.hide_engines || engine == nullptr
                              ? fmt::format("{}", to->engine.at())
                              : engine->door.name.str();
  writer_->write(fmt::format(": continued after {} tokens by engine {}\n\n", continuation_->tokens(), who));
  continuation_->start(*std::move(asked));
  forward(*to);
  gateway_.place_freed();
  return true;
}

/// The first byte of the second engine's body; false when the dispatcher wants another one.
bool Exchange::relay_rest() {
  if (!judge(answer_.status)) return false;
  if (answer_.watch.kind() != http::AnswerWatch::Kind::sse) {
    finished(AttemptEnd::broken_stream);
    break_off(502, "stream_incomplete", "the engine broke, and another one did not go on with a stream");
    return false;
  }
  gateway_.dispatcher_.first_byte(ticket_, gateway_.loop_.now());
  phase_ = Phase::relaying;
  return true;
}

}  // namespace signalbox::gateway
