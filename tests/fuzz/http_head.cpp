// Heads parse without a crash, alike whether the bytes came at once or in two parts, and their views lie inside the bytes.
#include <cstdint>
#include <cstdlib>

#include "actors/cluster_router/http/head.hpp"

using namespace signalbox::http;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}
bool inside(std::string_view view, std::string_view bytes) {
  return view.empty() ||
         (view.data() >= bytes.data() && view.data() + view.size() <= bytes.data() + bytes.size());
}

void check_request(std::string_view bytes, std::size_t cut) {
  RequestHead part, whole, direct;
  const Parsed first = parse_request(bytes.substr(0, cut), 0, {}, part);
  const Parsed all = parse_request(bytes, 0, {}, direct);
  if (first.consumed > 0) require(all.consumed == first.consumed);
  if (first.fault != Fault::none) require(all.consumed == 0);
  if (first.consumed > 0 || first.fault != Fault::none) return;
  require(parse_request(bytes, cut, {}, whole).consumed == all.consumed);
  if (all.consumed == 0) return;
  require(inside(direct.target, bytes) && inside(direct.method, bytes) && !direct.target.empty());
  for (const Field& field : direct.fields)
    require(inside(field.name, bytes) && inside(field.value, bytes) && !field.name.empty());
  require(!(find(direct.fields, "content-length") && find(direct.fields, "transfer-encoding")));
}

void check_response(std::string_view bytes, std::size_t cut) {
  ResponseHead part, whole, direct;
  const Parsed first = parse_response(bytes.substr(0, cut), 0, {}, false, part);
  const Parsed all = parse_response(bytes, 0, {}, false, direct);
  if (first.consumed > 0) require(all.consumed == first.consumed);
  if (first.consumed > 0 || first.fault != Fault::none) return;
  require(parse_response(bytes, cut, {}, false, whole).consumed == all.consumed);
  if (all.consumed > 0) require(direct.status >= 100 && direct.status <= 999);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = bytes.empty() ? 0 : (data[0] * 256u + data[1]) % (bytes.size() + 1);
  check_request(bytes, cut);
  check_response(bytes, cut);
  return 0;
}
