// A stream of events reads alike at whatever boundary its bytes are cut, and watching it for usage never crashes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "actors/cluster_router/http/usage.hpp"

using namespace signalbox::http;

namespace {

std::string events_of(std::string_view bytes, std::size_t piece) {
  SseReader reader;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    reader.read(bytes.substr(at, piece), [&](std::string_view data) { out.append(data) += '\n'; });
  return out + std::to_string(reader.events()) + (reader.at_boundary() ? "b" : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (events_of(bytes, bytes.size()) != events_of(bytes, 1 + data[0] % bytes.size())) std::abort();
  for (const auto kind : {AnswerWatch::Kind::sse, AnswerWatch::Kind::json}) {
    AnswerWatch watch(kind, StreamEnd::typed_event);
    watch.read(bytes);
    watch.finish();
  }
  return 0;
}
