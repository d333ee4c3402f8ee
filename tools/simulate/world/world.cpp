#include "tools/simulate/world/world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/simulate/world/process.hpp"

namespace signalbox::simulate {
namespace {

constexpr std::size_t most_warnings = 50;

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      rng_(scenario.seed),
      fault_rng_(rng_.split(2)),
      network_(scenario.config, scenario.network_jitter, rng_.split(1)),
      recorder_(scenario),
      bus_(queue_, [this](MemberId from, MemberId to) { return pass(from, to); }),
      data_(queue_, network_, scenario.config, scenario.loads, scenario, [this](const Outcome& outcome) {
        recorder_.record(outcome);
        if (hooks_ != nullptr) hooks_->ended(outcome);
      }) {
  bus_.set_tap(
      [this](const schema::Message& message, const schema::Envelope& envelope) { watch(message, envelope); });
  seats_.emplace_back();  // the operator's
  for (const config::Process& row : scenario.config.processes) {
    processes_.push_back(std::make_unique<Process>(
        row, queue_, [this, at = processes_.size()] { say_beat(*processes_[at]); }));
    Process& process = *processes_.back();
    process.role = value_of<Role>(row.role).value_or(Role::tool);
    process.place.name = row.id;
    process.place.cluster = row.cluster;
    process.place.log = [this](LogEntry entry) { note(std::move(entry)); };
  }
  for (std::size_t load = 0; load < scenario.loads.size(); ++load)
    sources_.emplace_back(scenario.loads[load], rng_.split(1000 + load));
  arrival_wishes_.resize(sources_.size());
}

World::~World() = default;

void World::set_hooks(Hooks& hooks) {
  hooks_ = &hooks;
  for (const auto& process : processes_) process->place.hooks = &hooks;
  bus_.set_let_in([this](MemberId to, const schema::Delivery& delivery, schema::Unwelcome why) {
    return seats_[to].place != nullptr && hooks_->let_in(*seats_[to].place, delivery, why);
  });
}

std::vector<World::ProcessNow> World::processes() const {
  std::vector<ProcessNow> out;
  for (const auto& process : processes_)
    out.push_back({process->place, process->role, process->up(),
                   process->up() ? standing_of(*process) : kit::Standing{}});
  return out;
}

Report World::run() {
  for (const auto& process : processes_) start(*process);
  schedule_happenings();
  for (std::size_t load = 0; load < sources_.size(); ++load) schedule_arrival(load);
  queue_.in(scenario_.sample, [this] { take_sample(); });
  queue_.run_until(instant_at(scenario_.duration));

  Report report = recorder_.report();
  report.events = queue_.happened();
  report.messages = bus_.said();
  report.snapshots = snapshots_said_;
  report.warnings = warnings_;
  return report;
}

void World::start(Process& process) {
  process.started = queue_.now();
  ++process.place.incarnation.counter;
  process.place.incarnation.random = rng_.next();
  RoleBuilder builder{*this, process};
  process.beat_author = builder.new_member();
  if (!builder.build())
    return note({queue_.now(), process.place.name, schema::Severity::warning, "left_out",
                 fmt::format("the virtual world has no role {}", process.row.role)});
  if (hooks_ != nullptr) hooks_->started(process.place);
  for (const auto& node : process.nodes) node->start();
  process.beat.set(queue_.now());
}

void World::stop(Process& process) {
  process.nodes.clear();
  process.place.paused = false;
  process.beat.set(end_of_time);
}

kit::Standing World::standing_of(const Process& process) const {
  kit::Standing standing = process.nodes.front()->standing();
  for (const auto& node : process.nodes)
    if (!node->standing().ready) standing.ready = false;
  return standing;
}

// The kit's process says this beside what its machines say.
void World::say_beat(Process& process) {
  if (process.place.paused) return process.beat.set(queue_.now() + scenario_.config.intervals.beat);
  const kit::Standing standing = standing_of(process);
  schema::Beat beat;
  beat.role = process.role;
  beat.id = process.place.name;
  beat.cluster = process.place.cluster;
  beat.ready = standing.ready;
  beat.state = standing.state;
  beat.leads = standing.leads;
  beat.term = standing.term;
  beat.snapshot = standing.snapshot;
  beat.policy = standing.policy;
  beat.uptime = queue_.now() - process.started;
  if (const Status said =
          bus_.say(process.beat_author, process.place.name, process.place.incarnation, std::move(beat));
      !said)
    note({queue_.now(), process.place.name, schema::Severity::critical, "bad_beat", said.error().text()});
  process.beat.set(queue_.now() + scenario_.config.intervals.beat);
}

Passage World::pass(MemberId from, MemberId to) {
  const Seat &sender = seats_[from], &receiver = seats_[to];
  const Duration on_time = network_.one_way(sender.cluster, receiver.cluster);
  Passage passage(on_time);
  if (sender.place == nullptr || sender.place == receiver.place) return passage;
  if (faults_.is_cut(sender.place->name, receiver.place->name)) return {};
  const auto late = [&] { return on_time + from_seconds(fault_rng_.uniform() * to_seconds(most_late)); };
  if (fault_rng_.chance(faults_.repeat)) passage.again = late();
  if (fault_rng_.chance(faults_.overtake)) passage.delay = late(), passage.in_order = false;
  if (fault_rng_.chance(faults_.loss)) passage.delay.reset();
  return passage;
}

void World::watch(const schema::Message& message, const schema::Envelope& envelope) {
  if (hooks_ != nullptr) hooks_->said(message, envelope);
  const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&message);
  if (snapshot == nullptr) return;
  ++snapshots_said_;
  const auto [place, fresh] = snapshots_.try_emplace(snapshot->cluster, *snapshot);
  if (!fresh && place->second.version < snapshot->version) place->second = *snapshot;
}

void World::note(LogEntry entry) {
  if (entry.severity == schema::Severity::info || warnings_.size() == most_warnings) return;
  warnings_.push_back(fmt::format("{:.3f} s {} {}: {}", to_seconds(entry.at.time_since_epoch()),
                                  entry.process, entry.event, entry.text));
}

void World::schedule_happenings() {
  for (const Happening& happening : scenario_.happenings)
    queue_.at(instant_at(happening.at), [this, &happening] { happen(happening); });
}

void World::happen(const Happening& h) {
  const auto& engines = scenario_.config.engines;
  const auto engine = static_cast<std::size_t>(
      std::find_if(engines.begin(), engines.end(), [&](const auto& e) { return e.name == h.engine; }) -
      engines.begin());
  switch (h.kind) {
    case HappeningKind::slow: {
      engine_sim::Faults faults = data_.engine(engine).faults();
      faults.slowness = h.value;
      return data_.engine(engine).set_faults(faults);
    }
    case HappeningKind::freeze: {
      engine_sim::Faults faults = data_.engine(engine).faults();
      faults.frozen = h.value != 0;
      return data_.engine(engine).set_faults(faults);
    }
    case HappeningKind::down:
      if (h.value != 0) return data_.stop_engine(engine);
      return data_.engine(engine).start();
    case HappeningKind::tell_network: return say_network(h);
    case HappeningKind::network: return network_.set_round_trip(h.from, h.to, from_seconds(h.value));
    case HappeningKind::demand:
      for (std::size_t load = 0; load < sources_.size(); ++load) {
        if (!h.load.empty() && scenario_.loads[load].name != h.load) continue;
        sources_[load].set_factor(h.value);
        schedule_arrival(load);
      }
      return;
    case HappeningKind::cut:
      if (h.value != 0)
        faults_.cuts.insert({h.process, h.peer});
      else
        faults_.cuts.erase({h.process, h.peer});
      return;
    case HappeningKind::loss: faults_.loss = h.value; return;
    case HappeningKind::repeat: faults_.repeat = h.value; return;
    case HappeningKind::overtake: faults_.overtake = h.value; return;
    case HappeningKind::kill:
    case HappeningKind::pause:
    case HappeningKind::disk_full:
    case HappeningKind::solver: return happen_to_process(h);
  }
}

void World::happen_to_process(const Happening& h) {
  const auto found = std::find_if(processes_.begin(), processes_.end(),
                                  [&](const auto& process) { return process->row.id == h.process; });
  if (found == processes_.end()) return;
  Process& process = **found;
  const bool on = h.value != 0;
  if (h.kind == HappeningKind::kill && on) stop(process);
  if (h.kind == HappeningKind::kill && !on && !process.up()) start(process);
  if (h.kind == HappeningKind::disk_full) process.place.disk_full = on;
  if (h.kind == HappeningKind::solver) process.solver_fault = static_cast<int>(h.value);
  if (h.kind != HappeningKind::pause) return;
  process.place.paused = on && process.up();
  if (!process.place.paused)
    for (const auto& node : process.nodes) node->resume();
}

void World::say_network(const Happening& h) {
  schema::Order order;
  order.target = ProcessName("all");
  order.id = fmt::format("order-{}", ++orders_);
  order.kind = schema::OrderKind::set_network;
  order.from = h.from;
  order.to = h.to;
  order.value = h.value;
  const Incarnation life{.counter = 1, .random = scenario_.seed};
  if (const Status said = bus_.say(operator_, ProcessName("operator"), life, std::move(order)); !said)
    note({queue_.now(), ProcessName("operator"), schema::Severity::critical, "bad_order",
          said.error().text()});
}

void World::schedule_arrival(std::size_t load) {
  const auto next = sources_[load].next_after(queue_.now());
  const std::uint64_t wish = ++arrival_wishes_[load];
  if (!next) return;
  queue_.at(*next, [this, load, wish] {
    if (wish != arrival_wishes_[load]) return;
    arrive(load);
    schedule_arrival(load);
  });
}

// A cluster's routers share its requests evenly.
void World::arrive(std::size_t load) {
  Arrival arrival = sources_[load].take(queue_.now());
  recorder_.arrived(load);
  std::vector<std::size_t> routers;
  for (const auto& process : processes_)
    if (process->router && process->up() && process->place.cluster == scenario_.loads[load].cluster)
      routers.push_back(*process->router);
  if (routers.empty()) return;
  data_.arrive(routers[rng_.below(routers.size())], load, std::move(arrival));
}

void World::take_sample() {
  SampleRow row{queue_.now(), std::vector<EngineSample>(data_.engines()), {}, {}, 0};
  const std::vector<double> sent = recorder_.take_sent_shares();
  for (const auto& [cluster, snapshot] : snapshots_) {
    const std::size_t first = row.planned.size();
    for (const schema::AdmitRow& admit : snapshot.admits)
      row.planned.push_back({cluster, admit.request_class, std::vector<double>(data_.engines())});
    for (const schema::WeightRow& weight : snapshot.weights)
      for (std::size_t p = first; p < row.planned.size(); ++p)
        if (row.planned[p].request_class == weight.request_class)
          row.planned[p].weights[weight.engine.at()] = weight.weight;
  }
  for (std::size_t e = 0; e < data_.engines(); ++e) {
    EngineSample& sample = row.engines[e];
    sample.served = sent[e];
    if (!data_.engine(e).up()) continue;
    const engine_sim::Load load = data_.engine(e).machine().load();
    sample.running = load.running;
    sample.waiting = load.waiting;
    sample.kv_usage = static_cast<double>(load.kv_used_blocks) / load.kv_blocks;
  }
  for (const auto& process : processes_)
    if (process->router)
      row.waiting_at_routers += static_cast<std::uint32_t>(data_.dispatcher(*process->router).waiting());
  recorder_.sample(std::move(row));
  if (hooks_ != nullptr) hooks_->look(*this);
  queue_.in(scenario_.sample, [this] { take_sample(); });
}

}  // namespace signalbox::simulate
