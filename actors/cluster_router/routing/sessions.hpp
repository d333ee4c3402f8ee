// Where each session was served last.
#pragma once

#include <cstdint>
#include <vector>

#include "messages/base/ids.hpp"

namespace signalbox::routing {

/// One place per hash: a session that another one displaces is routed by cost again, which its cached prompt draws to
/// the same engine anyway.
class Sessions {
 public:
  EngineIndex find(std::uint64_t session_hash) const {
    if (session_hash == 0 || places_.empty()) return {};
    const Place& place = places_[session_hash % size];
    return place.session == session_hash ? place.engine : EngineIndex{};
  }
  void set(std::uint64_t session_hash, EngineIndex engine) {
    if (session_hash == 0) return;
    if (places_.empty()) places_.resize(size);
    places_[session_hash % size] = {session_hash, engine};
  }
  /// `to[i]` is the new row of engine i, or none.
  void remap(const std::vector<EngineIndex>& to) {
    for (Place& place : places_)
      if (place.engine.valid()) place.engine = to[place.engine.at()];
  }

 private:
  static constexpr std::size_t size = 16'384;
  struct Place {
    std::uint64_t session = 0;
    EngineIndex engine;
  };
  std::vector<Place> places_;  ///< empty until the first session
};

}  // namespace signalbox::routing
