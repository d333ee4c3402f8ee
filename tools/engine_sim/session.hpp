// One request between its client and the machine.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tools/engine_sim/server.hpp"

namespace signalbox::engine_sim {

class EngineServer::Session final : public net::Disposable, public net::ResponseObserver {
 public:
  Session(EngineServer& server, RequestId request, net::ResponseWriterPtr response)
      : id(request), writer(std::move(response)), server_(server) {
    writer->observe(this);
  }
  ~Session() override { writer->observe(nullptr); }

  /// The answer up to its n-th token.
  std::string_view text_until(std::uint32_t tokens) const;
  void token(std::uint32_t n);
  void finish(FinishReason reason, const Usage& usage);
  void on_client_gone() override { server_.client_gone(*this); }

  const RequestId id;
  net::ResponseWriterPtr writer;
  Ask ask;
  AnswerHead head;
  std::string answer;  ///< the whole text, known beforehand
  std::uint32_t prompt_tokens = 0;
  std::uint32_t dies_at_token = 0;  ///< 0: lives

 private:
  EngineServer& server_;
};

}  // namespace signalbox::engine_sim
