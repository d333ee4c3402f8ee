#include "tools/simulate/world/data_plane.hpp"

#include <algorithm>

#include "actors/cluster_router/routing/request.hpp"

namespace signalbox::simulate {

using schema::AttemptEnd;

struct DataPlane::Router {
  Router(routing::DispatcherOptions options, EventQueue& queue, EventQueue::Act on_ready)
      : cluster(options.cluster), dispatcher(std::move(options)), ready(queue, std::move(on_ready)) {}
  ClusterName cluster;
  routing::Dispatcher dispatcher;
  Alarm ready;
  std::vector<FlightId> by_slot = {};  ///< the flight of each ticket's slot

  void remember(routing::Ticket ticket, FlightId id) {
    if (ticket.slot == UINT32_MAX) return;  // refused at once
    if (by_slot.size() <= ticket.slot) by_slot.resize(ticket.slot + 1);
    by_slot[ticket.slot] = id;
  }
};

struct DataPlane::Flight {
  std::size_t router = 0;
  Arrival arrival;
  routing::Ticket ticket;
  Outcome outcome;
  std::uint32_t attempt = 0;  ///< counts from 1; 0: not sent yet
  bool on_engine = false;
  bool head_seen = false;
  Duration gap{};
  Instant head_due = never_yet;  ///< an answer's end does not overtake its head
  double uncached_tokens = 0;    ///< a rival's: counted with what waits at the engine; 0: no longer
};

namespace {

constexpr auto bytes_per_token = static_cast<std::uint32_t>(routing::bytes_per_token);

// Sampling noise aside, a simulated engine is its declared profile at its declared speed.
engine_sim::EngineOptions options_of(const config::Config& config, const config::Engine& engine,
                                     double noise) {
  const config::Profile& profile = config.profile_of(engine);
  engine_sim::EngineOptions options;
  options.curve = {profile.a, profile.b, profile.k, profile.c};
  options.speed = engine.simulated ? engine.simulated->speed : 1.0;
  options.step_noise = noise;
  const std::uint64_t kv_tokens =
      engine.simulated && engine.simulated->kv_tokens > 0 ? engine.simulated->kv_tokens : profile.kv_tokens;
  if (kv_tokens > 0) options.kv_blocks = static_cast<std::uint32_t>(kv_tokens / options.block_tokens);
  if (profile.max_batch > 0) options.max_batch = profile.max_batch;
  if (profile.prefill_chunk > 0) options.chunk_tokens = profile.prefill_chunk;
  options.step_tokens = std::max(options.chunk_tokens, options.max_batch) + options.max_batch;
  return options;
}

}  // namespace

DataPlane::DataPlane(EventQueue& queue, Network& network, const config::Config& config,
                     const std::vector<Load>& loads, const Scenario& scenario, Record record)
    : queue_(queue), network_(network), config_(config), loads_(loads), record_(std::move(record)) {
  for (std::size_t row = 0; row < config.engines.size(); ++row) {
    const config::Engine& engine = config.engines[row];
    engines_.push_back(std::make_unique<EngineHost>(
        queue, options_of(config, engine, scenario.step_noise), mix64(scenario.seed) + row,
        [this, row](const engine_sim::Event& event) { hear_engine(row, event); }));
  }
  if (scenario.rule != RoutingRule::signalbox)
    rivals_.emplace(
        scenario.rule, engines_.size(),
        [this](EngineIndex e) -> const EngineHost& { return *engines_[e.at()]; }, mix64(scenario.seed + 77));
}

DataPlane::~DataPlane() = default;

std::size_t DataPlane::add_router(routing::DispatcherOptions options) {
  const std::size_t row = routers_.size();
  routers_.push_back(std::make_unique<Router>(std::move(options), queue_, [this, row] { pump(row); }));
  return row;
}

routing::Dispatcher& DataPlane::dispatcher(std::size_t router) { return routers_[router]->dispatcher; }

void DataPlane::adopt(std::size_t router, std::shared_ptr<const routing::View> view) {
  routers_[router]->dispatcher.adopt(std::move(view), queue_.now());
  pump(router);
}

void DataPlane::arrive(std::size_t router, std::size_t load, Arrival arrival) {
  const FlightId id = next_++;
  Flight& flight = flights_[id];
  flight.router = router;
  flight.outcome = {
      .load = load, .router = router, .arrived = queue_.now(), .ended = never_yet, .engine = {}};
  flight.arrival = std::move(arrival);
  if (rivals_) return begin_by_rival(id);
  begin(id);
  pump(router);
}

namespace {

routing::PromptBlocks router_blocks(const Load& from, const Content& prompt) {
  return block_hashes(prompt, routing::default_block_bytes / bytes_per_token,
                      routing::tenant_key(0, from.tenant), routing::max_prompt_blocks);
}

std::vector<std::uint64_t> engine_blocks(const Load& from, const Content& prompt, const EngineHost& engine) {
  return block_hashes(prompt, engine.machine().options().block_tokens, routing::tenant_key(1, from.model));
}

}  // namespace

void DataPlane::begin(FlightId id) {
  Flight& flight = flights_.at(id);
  const Load& from = loads_[flight.outcome.load];
  routing::RequestFacts facts;
  facts.tenant = from.tenant;
  facts.model = from.model;
  facts.asked = from.asked;
  facts.prompt_bytes = tokens_of(flight.arrival.prompt) * bytes_per_token;
  facts.stream = true;
  facts.blocks = router_blocks(from, flight.arrival.prompt);
  Router& router = *routers_[flight.router];
  const routing::Begun begun = router.dispatcher.begin(std::move(facts), queue_.now());
  flight.ticket = begun.ticket;
  router.remember(begun.ticket, id);
  obey(id, begun.verdict);
}

void DataPlane::begin_by_rival(FlightId id) {
  constexpr Duration patience = 1h;
  Flight& flight = flights_.at(id);
  const Load& from = loads_[flight.outcome.load];
  std::vector<EngineIndex> engines;
  for (std::size_t row = 0; row < engines_.size(); ++row) {
    const auto& models = config_.engines[row].models;
    const bool serves = std::find(models.begin(), models.end(), ModelName(from.model)) != models.end();
    if (serves && engines_[row]->up()) engines.emplace_back(row);
  }
  if (engines.empty()) return refuse(id, {schema::RefuseReason::no_engine, 503, Duration::zero()});
  const auto by_router = router_blocks(from, flight.arrival.prompt);
  const auto by_engine = engine_blocks(from, flight.arrival.prompt, *engines_[engines.front().at()]);
  const Question question{static_cast<double>(tokens_of(flight.arrival.prompt)), engines, by_router,
                          by_engine};
  const EngineIndex chosen = rivals_->choose(flight.router, question);
  flight.uncached_tokens = rivals_->sent(flight.router, chosen, question);
  forward(id, {chosen, 1, patience, patience, patience, patience, Duration::zero()});
}

void DataPlane::obey(FlightId id, const routing::Verdict& verdict) {
  if (const auto* forward_to = std::get_if<routing::Forward>(&verdict)) return forward(id, *forward_to);
  if (const auto* refusal = std::get_if<routing::Refuse>(&verdict)) return refuse(id, *refusal);
}

void DataPlane::refuse(FlightId id, const routing::Refuse& refusal) {
  flights_.at(id).outcome.refused = refusal.reason;
  close(id, flights_.at(id).outcome.end);
}

void DataPlane::close(FlightId id, AttemptEnd end) {
  const auto found = flights_.find(id);
  if (rivals_ && found->second.outcome.engine.valid()) {
    rivals_->prefilled(found->second.outcome.engine, found->second.uncached_tokens);
    rivals_->ended(found->second.router, found->second.outcome.engine);
  }
  Outcome& outcome = found->second.outcome;
  outcome.end = end;
  outcome.ended = queue_.now();
  record_(outcome);
  flights_.erase(found);
}

DataPlane::Flight* DataPlane::current(FlightId id, std::uint32_t attempt) {
  const auto found = flights_.find(id);
  return found == flights_.end() || found->second.attempt != attempt ? nullptr : &found->second;
}

Duration DataPlane::one_way(const Flight& flight) {
  return network_.one_way(routers_[flight.router]->cluster,
                          config_.engines[flight.outcome.engine.at()].cluster);
}

void DataPlane::forward(FlightId id, const routing::Forward& to) {
  Flight& flight = flights_.at(id);
  const std::uint32_t attempt = ++flight.attempt;
  flight.outcome.engine = to.engine;
  flight.outcome.attempts = attempt;
  flight.on_engine = flight.head_seen = false;
  flight.gap = to.gap;
  queue_.in(one_way(flight), [this, id, attempt] { reach_engine(id, attempt); });
  queue_.in(to.first_byte, [this, id, attempt] {
    if (const Flight* late = current(id, attempt); late && !late->head_seen)
      fail(id, attempt, AttemptEnd::first_byte_timeout);
  });
  queue_.in(to.total, [this, id, attempt] {
    if (const Flight* late = current(id, attempt); late && late->head_seen)
      take_end(id, attempt, AttemptEnd::total_timeout, {});
  });
}

void DataPlane::reach_engine(FlightId id, std::uint32_t attempt) {
  Flight* flight = current(id, attempt);
  if (!flight) return;
  EngineHost& engine = *engines_[flight->outcome.engine.at()];
  const Duration back = one_way(*flight);
  if (!engine.up())
    return queue_.in(back, [this, id, attempt] { fail(id, attempt, AttemptEnd::connect_error); });
  const Load& load = loads_[flight->outcome.load];
  engine_sim::Request request{.id = engine_request(id, attempt),
                              .prompt_tokens = static_cast<std::uint32_t>(tokens_of(flight->arrival.prompt)),
                              .output_tokens = flight->arrival.output_tokens,
                              .max_output_tokens = flight->arrival.output_tokens + 1};
  request.blocks = engine_blocks(load, flight->arrival.prompt, engine);
  switch (engine.submit(std::move(request))) {
    case engine_sim::Admission::accepted: flight->on_engine = true; return;
    case engine_sim::Admission::too_long:
      return queue_.in(back, [this, id, attempt] { take_head(id, attempt, 400); });
    default: return queue_.in(back, [this, id, attempt] { take_head(id, attempt, 503); });
  }
}

void DataPlane::hear_engine(std::size_t row, const engine_sim::Event& event) {
  const FlightId id = event.request / 64;
  const auto attempt = static_cast<std::uint32_t>(event.request % 64);
  Flight* flight = current(id, attempt);
  if (!flight || flight->outcome.engine.at() != row) return;
  Duration back = one_way(*flight);
  if (event.kind == engine_sim::EventKind::first_token) {
    flight->head_due = queue_.now() + back;
    return queue_.in(back, [this, id, attempt] { take_head(id, attempt, 200); });
  }
  if (!flight->head_seen) back = std::max(back, flight->head_due - queue_.now());
  if (event.kind != engine_sim::EventKind::finished) return;
  const routing::Usage usage{.prompt_tokens = tokens_of(flight->arrival.prompt),
                             .cached_tokens = event.cached_tokens,
                             .output_tokens = event.tokens};
  queue_.in(back, [this, id, attempt, usage] { take_end(id, attempt, AttemptEnd::succeeded, usage); });
}

void DataPlane::take_head(FlightId id, std::uint32_t attempt, std::uint16_t status) {
  Flight* flight = current(id, attempt);
  if (!flight) return;
  routing::Dispatcher& dispatcher = routers_[flight->router]->dispatcher;
  if (rivals_)
    rivals_->prefilled(flight->outcome.engine, std::exchange(flight->uncached_tokens, 0.0));
  else if (const auto verdict = dispatcher.head(flight->ticket, status, Duration::zero(), queue_.now()))
    return obey(id, *verdict);
  flight->head_seen = true;
  flight->outcome.status = status;
  flight->outcome.first_byte = queue_.now();
  if (!rivals_) dispatcher.first_byte(flight->ticket, queue_.now());
  if (status != 200) return take_end(id, attempt, AttemptEnd::succeeded, {});
  watch_gap(id, attempt, flight->gap, UINT64_MAX);
}

// Tokens are not events here: an engine that took no step for a whole gap sent none.
void DataPlane::watch_gap(FlightId id, std::uint32_t attempt, Duration gap, std::uint64_t steps_seen) {
  const Flight* flight = current(id, attempt);
  if (!flight) return;
  const EngineHost& engine = *engines_[flight->outcome.engine.at()];
  const std::uint64_t steps = engine.up() ? engine.machine().counters().steps : steps_seen;
  if (steps == steps_seen) return take_end(id, attempt, AttemptEnd::gap_timeout, {});
  queue_.in(gap, [this, id, attempt, gap, steps] { watch_gap(id, attempt, gap, steps); });
}

void DataPlane::take_end(FlightId id, std::uint32_t attempt, AttemptEnd end, const routing::Usage& usage) {
  Flight* flight = current(id, attempt);
  if (!flight) return;
  const std::size_t router = flight->router;
  EngineHost& engine = *engines_[flight->outcome.engine.at()];
  if (end != AttemptEnd::succeeded && engine.up()) engine.cancel(engine_request(id, attempt));
  flight->outcome.output_tokens = static_cast<std::uint32_t>(usage.output_tokens);
  if (!rivals_) routers_[router]->dispatcher.finished(flight->ticket, end, usage, queue_.now());
  close(id, end);
  pump(router);
}

void DataPlane::fail(FlightId id, std::uint32_t attempt, AttemptEnd end) {
  Flight* flight = current(id, attempt);
  if (!flight) return;
  EngineHost& engine = *engines_[flight->outcome.engine.at()];
  if (flight->on_engine && engine.up()) engine.cancel(engine_request(id, attempt));
  flight->outcome.end = end;
  if (rivals_) return close(id, end);
  const std::size_t router = flight->router;
  obey(id, routers_[router]->dispatcher.failed(flight->ticket, end, queue_.now()));
  pump(router);
}

void DataPlane::stop_engine(std::size_t row) {
  engines_[row]->stop();
  std::vector<FlightId> lost;
  for (const auto& [id, flight] : flights_)
    if (flight.on_engine && flight.outcome.engine.at() == row) lost.push_back(id);
  std::sort(lost.begin(), lost.end());
  for (const FlightId id : lost) {
    const Flight& flight = flights_.at(id);
    queue_.in(one_way(flight), [this, id, attempt = flight.attempt] {
      const Flight* broken = current(id, attempt);
      if (!broken) return;
      if (broken->head_seen)
        take_end(id, attempt, AttemptEnd::broken_stream, {});
      else
        fail(id, attempt, AttemptEnd::reset_before_head);
    });
  }
}

void DataPlane::pump(std::size_t row) {
  Router& router = *routers_[row];
  while (const auto ready = router.dispatcher.next_ready(queue_.now()))
    obey(router.by_slot[ready->ticket.slot], ready->verdict);
  router.ready.set(router.dispatcher.next_wake());
}

}  // namespace signalbox::simulate
