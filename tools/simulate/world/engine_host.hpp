// An engine in the virtual world: the batching machine behind a network interface that can be down.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/engine_sim/machine/engine.hpp"
#include "tools/simulate/world/event_queue.hpp"

namespace signalbox::simulate {

class EngineHost {
 public:
  using Told = std::function<void(const engine_sim::Event&)>;

  EngineHost(EventQueue& queue, const engine_sim::EngineOptions& options, std::uint64_t seed, Told told);
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  bool up() const { return engine_ != nullptr; }
  /// Precondition of the following: up().
  engine_sim::Admission submit(engine_sim::Request request);
  void cancel(engine_sim::RequestId id);
  const engine_sim::Engine& machine() const { return *engine_; }

  void set_faults(const engine_sim::Faults& faults);
  const engine_sim::Faults& faults() const { return faults_; }
  /// Everything that it holds is lost; nothing is told about it.
  void stop();
  /// A new, empty life.
  void start();
  std::uint64_t life() const { return life_; }
  Instant started() const { return started_; }

 private:
  void advance();
  void arm();

  EventQueue& queue_;
  engine_sim::EngineOptions options_;
  std::uint64_t seed_;
  Told told_;
  std::unique_ptr<engine_sim::Engine> engine_;
  engine_sim::Faults faults_;
  std::uint64_t life_ = 0;
  Instant started_;
  std::vector<engine_sim::Event> events_;
  Alarm alarm_;
};

}  // namespace signalbox::simulate
