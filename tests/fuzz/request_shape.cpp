// Any bytes are either a request with a model or an error, and an engine's error body is always brought into shape.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "actors/cluster_router/http/errors.hpp"
#include "actors/cluster_router/http/request_shape.hpp"

using namespace signalbox::http;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ShapeReader reader;
  std::string body(reinterpret_cast<const char*>(data), size);
  body.reserve(body.size() + 64);
  const auto shape = reader.read(body, Endpoint::responses);
  if (shape && shape->model.empty()) std::abort();
  if (shape && !shape->prompt.empty() &&
      (shape->prompt.data() < body.data() ||
       shape->prompt.data() + shape->prompt.size() > body.data() + body.size()))
    std::abort();
  if (normalise_error(500, body).substr(0, 21) != "{\"error\":{\"message\":\"") std::abort();
  return 0;
}
