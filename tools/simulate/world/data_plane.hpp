// Requests on their way: from a cluster's router by its dispatcher's word to an engine and back, with the network's
// delays and the policy's timeouts. It does in virtual time what the gateway does with sockets.
//
//   arrive -> begin -> Forward -> [network] -> engine -> first token -> [network] -> head -> ... -> finished
//                        ^                                                |
//                        +---- failed: refused, reset, timed out <--------+
//
// Where a scenario names another router's rule, that one chooses the engine: once, without retries and queues.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/cluster_router/routing/dispatcher.hpp"
#include "tools/simulate/world/engine_host.hpp"
#include "tools/simulate/world/event_queue.hpp"
#include "tools/simulate/world/load.hpp"
#include "tools/simulate/world/network.hpp"
#include "tools/simulate/world/rivals.hpp"

namespace signalbox::simulate {

/// What became of one request.
struct Outcome {
  std::size_t load = 0;    ///< row of the scenario's loads
  std::size_t router = 0;  ///< row of the data plane's routers
  Instant arrived, first_byte = never_yet, ended;
  EngineIndex engine;  ///< that served it last; not valid when refused at once
  std::uint32_t attempts = 0;
  schema::RefuseReason refused = schema::RefuseReason::none;
  schema::AttemptEnd end = schema::AttemptEnd::open;  ///< of the last attempt
  std::uint32_t output_tokens = 0;

  std::uint16_t status = 0;  ///< of the engine's answer; 0: none

  bool served() const { return end == schema::AttemptEnd::succeeded && status == 200; }
};

class DataPlane {
 public:
  using Record = std::function<void(const Outcome&)>;

  /// `config` and `loads` outlive it; engines are in the config's order, which is the fleet table's.
  DataPlane(EventQueue& queue, Network& network, const config::Config& config, const std::vector<Load>& loads,
            const Scenario& scenario, Record record);
  ~DataPlane();

  /// Adds a router; returns its row.
  std::size_t add_router(routing::DispatcherOptions options);
  routing::Dispatcher& dispatcher(std::size_t router);
  void adopt(std::size_t router, std::shared_ptr<const routing::View> view);
  /// A request of `load` enters at that router now.
  void arrive(std::size_t router, std::size_t load, Arrival arrival);

  EngineHost& engine(std::size_t row) { return *engines_[row]; }
  const EngineHost& engine(std::size_t row) const { return *engines_[row]; }
  std::size_t engines() const { return engines_.size(); }
  /// Its process dies: connections to it are reset.
  void stop_engine(std::size_t row);
  std::size_t in_flight() const { return flights_.size(); }

 private:
  using FlightId = std::uint64_t;
  struct Router;
  struct Flight;

  void begin(FlightId id);
  void begin_by_rival(FlightId id);
  void obey(FlightId id, const routing::Verdict& verdict);
  void forward(FlightId id, const routing::Forward& forward);
  void refuse(FlightId id, const routing::Refuse& refusal);
  void reach_engine(FlightId id, std::uint32_t attempt);
  void fail(FlightId id, std::uint32_t attempt, schema::AttemptEnd end);
  void take_head(FlightId id, std::uint32_t attempt, std::uint16_t status);
  void take_end(FlightId id, std::uint32_t attempt, schema::AttemptEnd end, const routing::Usage& usage);
  void watch_gap(FlightId id, std::uint32_t attempt, Duration gap, std::uint64_t steps_seen);
  void hear_engine(std::size_t row, const engine_sim::Event& event);
  void close(FlightId id, schema::AttemptEnd end);
  void pump(std::size_t router);
  /// The flight, if this is still its attempt.
  Flight* current(FlightId id, std::uint32_t attempt);
  Duration one_way(const Flight& flight);
  engine_sim::RequestId engine_request(FlightId id, std::uint32_t attempt) const { return id * 64 + attempt; }

  EventQueue& queue_;
  Network& network_;
  const config::Config& config_;
  const std::vector<Load>& loads_;
  Record record_;
  std::optional<Rivals> rivals_;  ///< choose in the dispatchers' place
  std::vector<std::unique_ptr<EngineHost>> engines_;
  std::vector<std::unique_ptr<Router>> routers_;
  std::unordered_map<FlightId, Flight> flights_;
  FlightId next_ = 1;
};

}  // namespace signalbox::simulate
