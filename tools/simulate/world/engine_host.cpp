#include "tools/simulate/world/engine_host.hpp"

namespace signalbox::simulate {

EngineHost::EngineHost(EventQueue& queue, const engine_sim::EngineOptions& options, std::uint64_t seed,
                       Told told)
    : queue_(queue), options_(options), seed_(seed), told_(std::move(told)), alarm_(queue, [this] {
        advance();
      }) {
  options_.report_tokens = false;
  start();
}

void EngineHost::start() {
  ++life_;
  started_ = queue_.now();
  engine_ = std::make_unique<engine_sim::Engine>(options_, seed_ + life_);
  set_faults(faults_);
}

void EngineHost::stop() {
  engine_.reset();
  arm();
}

engine_sim::Admission EngineHost::submit(engine_sim::Request request) {
  advance();
  const auto admission = engine_->submit(std::move(request), queue_.now());
  arm();
  return admission;
}

void EngineHost::cancel(engine_sim::RequestId id) {
  advance();
  engine_->cancel(id, queue_.now());
  arm();
}

void EngineHost::set_faults(const engine_sim::Faults& faults) {
  faults_ = faults;
  if (!up()) return;
  advance();
  engine_->set_faults(faults, queue_.now());
  arm();
}

void EngineHost::advance() {
  if (!up()) return;
  std::vector<engine_sim::Event> events = std::move(events_);
  events.clear();
  engine_->on_wake(queue_.now(), events);
  arm();
  for (const engine_sim::Event& event : events) told_(event);
  events_ = std::move(events);
}

void EngineHost::arm() { alarm_.set(up() ? engine_->next_wake() : end_of_time); }

}  // namespace signalbox::simulate
