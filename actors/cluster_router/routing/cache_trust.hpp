// How far the cache index may be believed of each engine, by what its answers say they found cached.
//
// The index forgets what an engine's KV memory cannot hold any more. An engine may hold less: others use it, its cache is
// smaller than declared, switched off or was emptied. Each answer that found less than the index said makes the index of
// that engine shallower, each that agrees a little deeper again, so that about one belief in twenty fails.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "messages/base/ids.hpp"

namespace signalbox::routing {

class CacheTrust {
 public:
  enum class Finding : std::uint8_t {
    agrees,
    shallower,  ///< the engine holds less than was believed
    lost,       ///< it seems to hold nothing of what came before
  };

  /// `from[i]` is the old row of engine i, or none.
  void remap(const std::vector<EngineIndex>& from) {
    std::vector<PerEngine> engines(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i].valid()) engines[i] = engines_[from[i].at()];
    engines_ = std::move(engines);
  }
  void forget(EngineIndex engine) { engines_[engine.at()] = {}; }

  /// An answer found `cached` tokens of its prompt where `believed` were expected; `block`: tokens of one block.
  Finding answered(EngineIndex engine, double believed, double cached, double block) {
    PerEngine& e = engines_[engine.at()];
    if (believed < block) return Finding::agrees;  // nothing was believed
    // Tokens are estimated from bytes, and engines count whole blocks of their own.
    if (cached >= 0.75 * believed - block) {
      e.empty = 0;
      e.share = std::min(1.0, e.share * growth);
      return Finding::agrees;
    }
    e.share = std::max(least, e.share * (1.0 - shrinkage * (1.0 - cached / believed)));
    e.empty = cached == 0 ? e.empty + 1 : 0;
    if (e.empty < enough) return Finding::shallower;
    e.empty = 0;
    return Finding::lost;
  }

  /// Of the depth that the engine's KV memory allows; in (0, 1].
  double share(EngineIndex engine) const { return engines_[engine.at()].share; }

 private:
  static constexpr double growth = 1.005, shrinkage = 0.1, least = 1.0 / 64;
  static constexpr std::uint32_t enough = 3;
  struct PerEngine {
    double share = 1;
    std::uint32_t empty = 0;  ///< answers in a row that found nothing at all
  };
  std::vector<PerEngine> engines_;
};

}  // namespace signalbox::routing
