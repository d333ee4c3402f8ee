// The second attempt of a request whose first one is late: waits until it is, then watches the second engine's answer up to
// the first byte of its body. From there on the exchange takes it over as its own.
#pragma once

#include <memory>
#include <optional>

#include "actors/cluster_router/gateway/answer_start.hpp"
#include "actors/cluster_router/gateway/engines.hpp"
#include "actors/cluster_router/net/client.hpp"
#include "actors/cluster_router/routing/verdict.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::gateway {

class HedgeObserver {
 public:
  /// The first attempt is late.
  virtual void on_hedge_due() = 0;
  /// The second engine's answer has begun: take it over, and say who is told of it from now on.
  virtual net::CallObserver& on_hedge_answering() = 0;
  /// The second attempt failed, or was answered with an error.
  virtual void on_hedge_over(schema::AttemptEnd end, std::uint16_t status) = 0;

 protected:
  ~HedgeObserver() = default;
};

/// How a call that failed before its first byte is told to the dispatcher.
schema::AttemptEnd before_first_byte(net::CallFault fault);

/// Keep it alive (Loop::later) when it ends in one of its observer's functions.
class Hedge final : public net::CallObserver {
 public:
  Hedge(net::Loop& loop, Duration after, http::Endpoint endpoint, HedgeObserver& observer);

  void start(std::shared_ptr<Engine> engine, const routing::Forward& to, std::unique_ptr<net::Call> call);
  /// A second attempt is under way.
  bool open() const { return call_ != nullptr; }
  const routing::Forward& to() const { return to_; }

  /// What has come of the second attempt, for who takes it over.
  struct Taken {
    std::shared_ptr<Engine> engine;
    std::unique_ptr<net::Call> call;
    std::optional<AnswerStart> answer;  ///< nothing: its head has not come yet
  };
  Taken take();

 private:
  void on_answer(const http::ResponseHead& head) override;
  void on_body(std::string_view bytes) override;
  void on_end() override;
  void on_fault(net::CallFault fault) override;

  HedgeObserver& observer_;
  net::Timer timer_;
  routing::Forward to_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<net::Call> call_;
  std::optional<AnswerStart> answer_;
  http::Endpoint endpoint_;
};

}  // namespace signalbox::gateway
