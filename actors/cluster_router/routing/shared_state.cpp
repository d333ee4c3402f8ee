#include "actors/cluster_router/routing/shared_state.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace signalbox::routing {

namespace {

constexpr std::size_t least_places = 1024, places_per_engine = 4;
constexpr std::uint64_t number_bits = 20, number_mask = (1ULL << number_bits) - 1;

/// Makes what is not there yet; of two loops that do so at once one gives its own up.
template <class T, class... Args>
T& made(std::atomic<T*>& slot, Args... args) {
  T* found = slot.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto own = std::make_unique<T>(args...);
  if (slot.compare_exchange_strong(found, own.get(), std::memory_order_acq_rel)) return *own.release();
  return *found;
}

/// Which sessions a place is for beside its index: the hash without the bits that the index and the number take.
std::uint64_t tag_of(std::uint64_t session) { return session & ~number_mask; }

}  // namespace

SharedState::~SharedState() {
  delete places_.load();
  delete sessions_.load();
}

std::uint32_t SharedState::number_of(std::string_view engine, std::size_t fleet) {
  const std::size_t wanted = std::bit_ceil(std::max(least_places, places_per_engine * fleet));
  Places& places = made(places_, std::min<std::size_t>(wanted, (none + 1) / 2));
  const std::uint64_t name = std::max<std::uint64_t>(1, XXH3_64bits(engine.data(), engine.size()));
  for (std::size_t i = 0; i < places.size; ++i) {
    const std::size_t at = (name + i) & (places.size - 1);
    std::uint64_t there = places.of[at].name.load(std::memory_order_acquire);
    if (there == 0 && places.of[at].name.compare_exchange_strong(there, name, std::memory_order_acq_rel))
      there = name;
    if (there == name) return static_cast<std::uint32_t>(at);
  }
  return none;
}

std::atomic<std::int64_t>* SharedState::in_flight(std::uint32_t number) {
  return number == none ? nullptr : &places_.load(std::memory_order_acquire)->of[number].in_flight;
}

std::uint32_t SharedState::home_of(std::uint64_t session) const {
  const Sessions* sessions = sessions_.load(std::memory_order_acquire);
  if (session == 0 || sessions == nullptr) return none;
  const std::uint64_t place = sessions->of[session % session_places].load(std::memory_order_relaxed);
  return place != 0 && tag_of(place) == tag_of(session) ? static_cast<std::uint32_t>(place & number_mask)
                                                        : none;
}

void SharedState::set_home(std::uint64_t session, std::uint32_t number) {
  if (session == 0 || number == none) return;
  made(sessions_).of[session % session_places].store(tag_of(session) | number, std::memory_order_relaxed);
}

void SharedState::set_waiting(std::uint32_t loop, bool waits) {
  const std::uint64_t bit = 1ULL << loop;
  waits ? waiting_.fetch_or(bit) : waiting_.fetch_and(~bit);
}

std::uint64_t SharedState::waiting_elsewhere(std::uint32_t loop) const {
  return loops_ == 1 ? 0 : waiting_.load() & ~(1ULL << loop);
}

std::int64_t SharedState::least_of_those_waiting(std::uint32_t loop) const {
  std::int64_t least = INT64_MAX;
  for (std::uint64_t left = waiting_elsewhere(loop); left != 0; left &= left - 1)
    least = std::min(least, in_flight_[static_cast<std::size_t>(std::countr_zero(left))].requests.load(
                                std::memory_order_relaxed));
  return least;
}

}  // namespace signalbox::routing
