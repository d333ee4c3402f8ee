// What is known of an engine's answer before its body: kept until it is certain that this answer is the client's.
#pragma once

#include <cstdint>
#include <string>

#include "actors/cluster_router/http/head.hpp"
#include "actors/cluster_router/http/usage.hpp"
#include "messages/base/time.hpp"

namespace signalbox::gateway {

struct AnswerStart {
  std::string lines;  ///< the field lines for the client
  http::AnswerWatch watch;
  std::uint64_t length = 0;
  Duration retry_after{};  ///< as the engine says; zero: it says nothing
  std::uint16_t status = 0;
  bool has_length = false;
  bool dated = false;  ///< a Date is among the lines
};

AnswerStart answer_start(const http::ResponseHead& head, http::Endpoint endpoint);

}  // namespace signalbox::gateway
