// Drives an engine in virtual time.
#pragma once

#include <functional>
#include <vector>

#include "tools/engine_sim/machine/engine.hpp"

namespace signalbox::engine_sim {

inline Instant at_s(double seconds) { return instant_at(from_seconds(seconds)); }

/// Hashes of `blocks` full blocks that share their first `shared` ones with every other request of the same
/// `family`.
inline std::vector<BlockHash> content(std::uint64_t family, std::uint32_t shared, std::uint32_t blocks,
                                      std::uint64_t own) {
  std::vector<BlockHash> hashes;
  BlockHash chain = mix64(family + 1);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    chain = mix64(chain ^ (i < shared ? i + 1 : mix64(own + 77) + i)) | 1;
    hashes.push_back(chain);
  }
  return hashes;
}

/// Wakes the engine until it is idle or `until` is reached; returns everything that happened.
inline std::vector<Event> run(Engine& engine, Instant until = end_of_time) {
  std::vector<Event> events;
  while (engine.next_wake() <= until && engine.next_wake() != end_of_time)
    engine.on_wake(engine.next_wake(), events);
  return events;
}

/// Keeps `concurrency` requests in flight until `total` have finished; `make(n)` is the n-th. Returns all
/// events.
inline std::vector<Event> closed_loop(Engine& engine, std::size_t concurrency, std::size_t total,
                                      const std::function<Request(std::size_t)>& make) {
  std::vector<Event> all, events;
  std::size_t submitted = 0;
  while (submitted < std::min(concurrency, total)) engine.submit(make(submitted++), instant_at(0ns));
  while (engine.next_wake() != end_of_time) {
    events.clear();
    const Instant now = engine.next_wake();
    engine.on_wake(now, events);
    for (const Event& event : events)
      if (event.kind == EventKind::finished && submitted < total) engine.submit(make(submitted++), now);
    all.insert(all.end(), events.begin(), events.end());
  }
  return all;
}

}  // namespace signalbox::engine_sim
