// Batches of KV events: no more is counted than the bytes can hold, and a batch that is cut, or goes on, is none.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "actors/engine_proxy/events/kv_batch.hpp"

using namespace signalbox::engine_proxy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  const auto counts = read_kv_batch(bytes);
  if (!counts) return 0;
  // A block, an event, a mark of an emptied cache take a byte at least.
  if (counts->stored + counts->removed + counts->clears + counts->skipped > size) std::abort();
  if (counts->stored_since_clear > counts->stored || counts->removed_since_clear > counts->removed)
    std::abort();
  if (counts->clears == 0 &&
      (counts->stored_since_clear != counts->stored || counts->removed_since_clear != counts->removed))
    std::abort();
  if (read_kv_batch(bytes)->fingerprint != counts->fingerprint || read_kv_batch(bytes.first(size - 1)))
    std::abort();
  std::vector<std::uint8_t> longer(bytes.begin(), bytes.end());
  longer.push_back(0);
  if (read_kv_batch(longer)) std::abort();
  return 0;
}
