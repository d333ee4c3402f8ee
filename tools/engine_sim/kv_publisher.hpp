// KV cache events as vLLM publishes them: a PUB with numbered batches in MessagePack, and a ROUTER that sends the latest ones
// again. The sockets live on a thread of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/engine_sim/machine/engine.hpp"

namespace signalbox::engine_sim {

enum class KvFormat : std::uint8_t {
  maps,    ///< vLLM since 0.24; replays carry the topic
  arrays,  ///< vLLM before, and SGLang; they do not
};

struct KvOptions {
  std::string events;  ///< endpoint; empty: nothing is published
  std::string replay;  ///< endpoint; empty: nothing is sent again
  std::uint32_t buffer = 10'000;
  KvFormat format = KvFormat::maps;
};

class KvPublisher {
 public:
  KvPublisher();
  ~KvPublisher();
  /// Errors: io for an endpoint that cannot be taken.
  Status start(const KvOptions& options);

  void stored(BlockHash block, BlockHash parent, std::uint32_t block_tokens);
  void removed(BlockHash block);
  void cleared();
  /// Publishes what came since the last call as one batch, if anything did. `strange`: with an event of an unknown kind. `lost`:
  /// it gets its number and is kept, but nobody hears it.
  void publish(double wall_s, bool strange, bool lost);

 private:
  class Thread;
  struct Change {
    char kind;
    BlockHash block, parent;
    std::uint32_t block_tokens;
  };
  std::vector<Change> changes_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace signalbox::engine_sim
