// Which slowness goes with which curve: a profile and a signal come in messages of their own, and one may be lost.
#pragma once

#include <optional>

#include "messages/schema/signals.hpp"

namespace signalbox::kit {

/// Times predicted by `profile` (null: the declared curve) are to be multiplied by this; nothing while nobody has measured.
/// A signal that speaks of another curve says nothing of this one.
inline std::optional<double> slowness_for(const schema::EngineProfile* profile,
                                          const schema::EngineSignal* signal) {
  if (profile != nullptr && profile->curve > 0 && (signal == nullptr || signal->curve != profile->curve))
    return profile->slowness;
  if (signal == nullptr || signal->slowness_samples == 0) return std::nullopt;
  return signal->slowness;
}

}  // namespace signalbox::kit
