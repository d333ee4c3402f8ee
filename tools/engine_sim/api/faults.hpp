// Faults that an operator or a test injects over POST /admin/faults.
#pragma once

#include <string>
#include <string_view>

#include "messages/base/result.hpp"
#include "tools/engine_sim/machine/options.hpp"

namespace signalbox::engine_sim {

struct InjectedFaults {
  bool refuse = false;        ///< connections are reset before any answer; /admin is served on
  bool hang = false;          ///< requests are read and never answered
  bool freeze = false;        ///< no token is made; /health and /metrics answer
  double slow = 1;            ///< multiplies the time of every step
  double error_ratio = 0;     ///< of inference requests that are answered with 500
  double die_mid_stream = 0;  ///< of inference requests whose connection is reset after some tokens
  bool kv_lost = false;       ///< KV events are numbered and kept, but not published
  bool kv_strange = false;    ///< each batch of KV events holds one of an unknown kind
  int status = 0;             ///< 400 to 599: the answer to everything but /admin; 0: none

  Faults machine() const { return {.slowness = slow, .frozen = freeze}; }
};

/// Changes the named faults only; "reset": true clears all others first. Errors: invalid, nothing is changed.
Status change_faults(InjectedFaults& faults, std::string_view json);
std::string faults_json(const InjectedFaults& faults);

}  // namespace signalbox::engine_sim
