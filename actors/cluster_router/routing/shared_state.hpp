// What the dispatchers of one router's event loops share: few numbers, all of them atomic, so that no loop waits for another.
//
// Per loop: its requests, queues, credits, penalties, cache knowledge, records. Shared: how many requests each engine has from this
// router, because a limit of N admits N whoever counts; where each session was served; which loops have requests that wait, and how many
// they have in flight.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string_view>

namespace signalbox::routing {

class SharedState {
 public:
  static constexpr std::uint32_t most_loops = 64;
  static constexpr std::uint32_t none = (1u << 20) - 1;  ///< no engine's number

  explicit SharedState(std::uint32_t loops) : loops_(loops), in_flight_(std::make_unique<OfLoop[]>(loops)) {
    assert(loops <= most_loops);
  }
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  /// The number of the engine of this name, the same for all loops and for good; `none` when too many names were seen. `fleet`:
  /// engines in the table, by which the first call sizes the whole.
  std::uint32_t number_of(std::string_view engine, std::size_t fleet);
  /// In flight from all loops; null for `none`.
  std::atomic<std::int64_t>* in_flight(std::uint32_t number);

  /// The number of the engine that served this session last, or `none`.
  std::uint32_t home_of(std::uint64_t session) const;
  void set_home(std::uint64_t session, std::uint32_t number);

  /// Says whether requests wait at this loop. Who sets it looks once more for a place afterwards, and who frees a place asks
  /// afterwards who waits: so no place stays free unseen.
  void set_waiting(std::uint32_t loop, bool waits);
  /// A bit for each loop at which requests wait, this one left out.
  std::uint64_t waiting_elsewhere(std::uint32_t loop) const;

  /// How many requests this loop has at engines; kept while some wait there.
  void set_in_flight(std::uint32_t loop, std::int64_t requests) {
    in_flight_[loop].requests.store(requests, std::memory_order_relaxed);
  }
  /// The least that another loop has at engines at which requests wait; INT64_MAX if none waits.
  std::int64_t least_of_those_waiting(std::uint32_t loop) const;

 private:
  /// On a cache line of its own: each loop writes its own often.
  struct alignas(64) OfLoop {
    std::atomic<std::int64_t> requests{0};
  };
  struct Place {
    std::atomic<std::uint64_t> name{0};  ///< hash; 0: free
    std::atomic<std::int64_t> in_flight{0};
  };
  struct Places {
    explicit Places(std::size_t count) : size(count), of(std::make_unique<Place[]>(count)) {}
    const std::size_t size;  ///< a power of two
    std::unique_ptr<Place[]> of;
  };
  static constexpr std::size_t session_places = 16'384;
  /// One place per hash: a session that another one displaces is routed by cost again, which its cached prompt draws to the same
  /// engine anyway. The upper bits of the hash, then the engine's number.
  struct Sessions {
    std::atomic<std::uint64_t> of[session_places] = {};
  };

  const std::uint32_t loops_;
  std::atomic<std::uint64_t> waiting_{0};
  std::unique_ptr<OfLoop[]> in_flight_;
  std::atomic<Places*> places_{nullptr};
  std::atomic<Sessions*> sessions_{nullptr};  ///< null until the first one
};

}  // namespace signalbox::routing
