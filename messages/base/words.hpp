// The enums that every room shares. Values are on the wire and in files: append, never renumber.
#pragma once

#include <cstdint>

#include "messages/base/criticality.hpp"
#include "messages/base/described.hpp"

namespace signalbox {

template <>
struct EnumTable<Criticality> {
  static constexpr std::array rows{
      EnumRow{"sheddable", "refused first when capacity is short"},
      EnumRow{"standard", "ordinary traffic"},
      EnumRow{"critical", "refused only when nothing else is left to refuse"},
  };
};
static_assert(enum_size<Criticality> == criticality_count);

/// What a process is.
enum class Role : std::uint8_t {
  engine_proxy,
  health_monitor,
  global_optimizer,
  cluster_router,
  policy_keeper,
  feedback_balancer,
  forwarder,
  tool,
  auditor,
  module,
};

template <>
struct EnumTable<Role> {
  static constexpr std::array rows{
      EnumRow{"engine-proxy", "reads engines and says what they know"},
      EnumRow{"health-monitor", "decides who is ready, late, degraded, draining or gone"},
      EnumRow{"global-optimizer", "solves for the routing weights and broadcasts them"},
      EnumRow{"cluster-router", "serves clients of one cluster"},
      EnumRow{"policy-keeper", "publishes the policy in force"},
      EnumRow{"feedback-balancer", "the legacy balancer: nudges weights after smoothed scores"},
      EnumRow{"forwarder", "carries the bus"},
      EnumRow{"tool", "an operator's command"},
      EnumRow{"auditor", "keeps the tamper-evident log"},
      EnumRow{"module", "an actor type that is not built in"},
  };
};

/// The interface that an engine speaks beside the OpenAI API.
enum class EngineKind : std::uint8_t { sim, vllm, sglang, llamacpp, tgi, trtllm, openai };

template <>
struct EnumTable<EngineKind> {
  static constexpr std::array rows{
      EnumRow{"sim", "signalbox engine-sim, with vLLM's metric names"},
      EnumRow{"vllm", "vLLM"},
      EnumRow{"sglang", "SGLang"},
      EnumRow{"llamacpp", "llama.cpp's server"},
      EnumRow{"tgi", "Text Generation Inference"},
      EnumRow{"trtllm", "TensorRT-LLM's trtllm-serve"},
      EnumRow{"openai", "nothing but the OpenAI API"},
  };
};

/// The health-monitor's word on an engine.
enum class HealthState : std::uint8_t { ready, degraded, suspect, gone, draining, starting };

template <>
struct EnumTable<HealthState> {
  static constexpr std::array rows{
      EnumRow{"ready", "serves at its declared capacity"},
      EnumRow{"degraded", "serves, with reduced capacity"},
      EnumRow{"suspect", "evidence against it is gathering: no new flow is planned, what it has goes on"},
      EnumRow{"gone", "does not serve"},
      EnumRow{"draining", "finishes what it has and gets nothing new"},
      EnumRow{"starting", "new: its share is ramped up"},
  };
};

}  // namespace signalbox
