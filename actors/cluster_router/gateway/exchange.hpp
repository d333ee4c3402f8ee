// One request from its arrival to the end of its answer: does what the dispatcher says, tells it what came of it.
#pragma once

#include <memory>
#include <string>

#include "actors/cluster_router/gateway/answer_start.hpp"
#include "actors/cluster_router/gateway/api_keys.hpp"
#include "actors/cluster_router/gateway/continuation.hpp"
#include "actors/cluster_router/gateway/engines.hpp"
#include "actors/cluster_router/gateway/hedge.hpp"
#include "actors/cluster_router/gateway/meters.hpp"
#include "actors/cluster_router/gateway/reading.hpp"
#include "actors/cluster_router/net/client.hpp"
#include "actors/cluster_router/net/server.hpp"
#include "actors/cluster_router/routing/verdict.hpp"
#include "actors/cluster_router/tracing/trace.hpp"

namespace signalbox::gateway {

class Gateway;

class Exchange final : public net::Disposable,
                       private net::ResponseObserver,
                       private net::CallObserver,
                       private HedgeObserver {
 public:
  /// `key`: whose request it is; null if nobody has to say. Its share is taken already.
  Exchange(Gateway& gateway, net::ResponseWriterPtr writer, const Reading& reading,
           std::shared_ptr<ApiKeyState> key);
  ~Exchange() override;

  /// Takes the first verdict; the exchange may be over when this returns.
  void start(routing::Ticket ticket, const routing::DecisionId& decision, const routing::Verdict& verdict);
  void act(const routing::Verdict& verdict);
  /// The router stops and can wait no longer.
  void end_by_drain();

  routing::Ticket ticket() const { return ticket_; }

 private:
  /// From the verdict to the client. An answer's head is held back until the first byte of its body, because until then the
  /// request can still go to another engine.
  enum class Phase : std::uint8_t { waiting, calling, answered, error_answer, relaying, over };

  void on_client_gone() override;
  void on_writable() override;
  void on_answer(const http::ResponseHead& head) override;
  void on_body(std::string_view bytes) override;
  void on_end() override;
  void on_fault(net::CallFault fault) override;

  void on_hedge_due() override;
  net::CallObserver& on_hedge_answering() override;
  void on_hedge_over(schema::AttemptEnd end, std::uint16_t status) override;

  void forward(const routing::Forward& forward);
  std::unique_ptr<net::Call> start_call(Engine& engine, const routing::Forward& to,
                                        net::CallObserver& observer);
  void prepare_continuation();
  bool continue_elsewhere(schema::AttemptEnd end);
  bool relay_rest();
  void relay_events(std::string_view bytes);
  bool continuing() const { return continuation_ && continuation_->started(); }
  bool settle_hedge(std::uint16_t status);
  void lose_hedge();
  void promote_hedge(schema::AttemptEnd end, std::uint16_t status);
  void refuse(const routing::Refuse& refuse);
  bool judge(std::uint16_t status);
  bool begin_relay();
  void end_error_answer();
  void break_off(int status, std::string_view reason, std::string_view message);
  void finished(schema::AttemptEnd end);
  void settle(double tokens);
  double tokens_so_far() const;
  void measure(const routing::Usage& usage);
  void describe_trace();
  void over(Ending ending);
  std::string own_lines() const;

  Gateway& gateway_;
  net::ResponseWriterPtr writer_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<net::Call> call_;
  std::unique_ptr<Continuation> continuation_;  ///< null: this stream cannot go on elsewhere
  std::shared_ptr<Hedge> hedge_;                ///< null: no second attempt is meant
  std::shared_ptr<const std::string> snapshot_;
  std::shared_ptr<ApiKeyState> key_;
  std::unique_ptr<tracing::Trace> trace_;  ///< null: not traced
  std::string request_id_;
  std::string model_;
  std::string error_body_;  ///< of an answer with a status from 400
  AnswerStart answer_;
  Meter& meter_;
  Instant began_;
  Instant first_byte_ = never_yet;
  routing::DecisionId decision_;
  routing::Ticket ticket_;
  EngineIndex engine_index_;
  double prompt_tokens_ = 0;    ///< estimated
  double charged_tokens_ = 0;   ///< of the key, until it is known how many they are
  std::uint32_t attempts_ = 0;  ///< made
  std::uint32_t attempt_ = 0;   ///< number of the one that call_ is
  Phase phase_ = Phase::waiting;
  http::Endpoint endpoint_;
  bool one_stream_ = false;  ///< of one choice
  bool request_held_ = true;
};

}  // namespace signalbox::gateway
