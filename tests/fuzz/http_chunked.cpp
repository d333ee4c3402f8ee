// A chunked body decodes alike at whatever boundary its bytes are cut.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "actors/cluster_router/http/chunked.hpp"

using namespace signalbox::http;

namespace {

struct Decoded {
  std::string body;
  std::size_t consumed = 0;
  ChunkedDecoder::State state = ChunkedDecoder::State::more;
  bool operator==(const Decoded&) const = default;
};

Decoded decode(std::string_view bytes, std::size_t piece) {
  ChunkedDecoder decoder;
  Decoded out;
  for (std::size_t at = 0; at < bytes.size() && out.state == ChunkedDecoder::State::more; at += piece) {
    std::string_view part = bytes.substr(at, piece);
    do {
      const auto step = decoder.next(part);
      out.body += step.data;
      out.consumed += step.consumed;
      out.state = step.state;
      part.remove_prefix(step.consumed);
    } while (!part.empty() && out.state == ChunkedDecoder::State::more);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!(decode(bytes, bytes.size()) == decode(bytes, 1 + data[0] % bytes.size()))) std::abort();
  return 0;
}
