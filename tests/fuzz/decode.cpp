// The two decoders that meet bytes from the network: of bodies (two bytes of kind, little-endian, then the body) and
// of envelopes.
#include <cstdlib>
#include <span>

#include "messages/codec/codec.hpp"

using namespace signalbox;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  if (const auto envelope = codec::decode_envelope(bytes);
      envelope && codec::encode(*envelope).size() > size + 64)
    std::abort();
  if (size < 2) return 0;
  const auto kind = static_cast<std::uint16_t>(data[0] | data[1] << 8);
  const auto message = codec::decode(kind, bytes.subspan(2));
  if (!message) return 0;
  // What was accepted is within its bounds, can be printed, and comes back the same.
  const auto again = codec::encode(*message);
  const auto second = codec::decode(kind, again);
  if (!schema::check(*message) || !second || codec::encode(*second) != again) std::abort();
  return codec::to_json(*message).empty() ? 1 : 0;
}
