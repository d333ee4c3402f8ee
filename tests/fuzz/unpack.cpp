// Compressed bodies: nothing beyond the limit is made of any bytes, and the first byte of the input says which coding.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "actors/cluster_router/http/unpack.hpp"

using namespace signalbox::http;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t limit = 1 << 20;
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string out;
  const Unpacked result = unpack(data[0] % 2 == 0 ? Coding::gzip : Coding::deflate, bytes, limit, out);
  if (out.size() > limit || (result == Unpacked::whole && bytes.empty())) std::abort();
  return 0;
}
