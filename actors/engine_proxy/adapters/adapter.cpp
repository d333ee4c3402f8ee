#include "actors/engine_proxy/adapters/adapter.hpp"

#include <charconv>

#include "actors/engine_proxy/adapters/names.hpp"

namespace signalbox::engine_proxy {

namespace {
Status read_nothing(std::string_view, Reading&) { return {}; }
constexpr Page bare_pages[] = {{"/v1/models", true, read_nothing}};
const Adapter bare{EngineKind::openai, bare_pages};
}  // namespace

const Adapter& adapter_of(EngineKind kind) {
  switch (kind) {
    case EngineKind::sim: return detail::sim;
    case EngineKind::vllm: return detail::vllm;
    case EngineKind::sglang: return detail::sglang;
    case EngineKind::llamacpp: return detail::llamacpp;
    case EngineKind::tgi:
    case EngineKind::trtllm:
    case EngineKind::openai: break;
  }
  return bare;
}

std::optional<double> Facts::label(std::string_view name, std::string_view key) {
  for (const Sample& sample : metrics_.find(name)) {
    const auto text = sample.label(key);
    double value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
      continue;
    reading_.names.emplace_back(name);
    return value;
  }
  return std::nullopt;
}

}  // namespace signalbox::engine_proxy
