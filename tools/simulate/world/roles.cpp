// What the world knows of each role: how to make its machines and what their commands do.
#include <algorithm>
#include <limits>

#include "actors/cluster_router/machine/machine.hpp"
#include "actors/engine_proxy/machine/machine.hpp"
#include "actors/feedback_balancer/machine/machine.hpp"
#include "actors/global_optimizer/machine/machine.hpp"
#include "actors/health_monitor/machine/machine.hpp"
#include "actors/kit/fleet/table.hpp"
#include "actors/policy_keeper/machine/machine.hpp"
#include "optimizer/solve/solve.hpp"
#include "tools/engine_sim/api/metrics.hpp"
#include "tools/simulate/world/process.hpp"

namespace signalbox::simulate {

MemberId RoleBuilder::new_member() {
  world.seats_.push_back({process.place.cluster, &process.place});
  return static_cast<MemberId>(world.seats_.size() - 1);
}

template <kit::Machine M>
Node<M>& RoleBuilder::add(M machine, typename Node<M>::Act act) {
  auto node = std::make_unique<Node<M>>(world.queue_, world.bus_, new_member(), process.place,
                                        std::move(machine), std::move(act));
  Node<M>& added = *node;
  process.nodes.push_back(std::move(node));
  return added;
}

bool RoleBuilder::build() {
  switch (process.role) {
    case Role::policy_keeper: return build_policy_keeper(), true;
    case Role::engine_proxy: return build_engine_proxy(), true;
    case Role::health_monitor: return build_health_monitor(), true;
    case Role::cluster_router: return build_cluster_router(), true;
    case Role::global_optimizer: return build_global_optimizer(), true;
    case Role::feedback_balancer: return build_feedback_balancer(), true;
    default: return false;
  }
}

void RoleBuilder::build_policy_keeper() {
  using policy_keeper::Machine;
  const std::string kept = process.place.kept[std::string(Machine::kept_name)];
  add<Machine>(Machine({process.row.id, "policy", kept}),
               [&w = world](const policy_keeper::ReadPolicy&, const Teller<Machine>& tell) {
                 w.queue_.in(1ms, [&w, tell] { tell(policy_keeper::PolicyText{w.scenario_.policy}); });
               });
}

namespace {

engine_proxy::Options proxy_options(const config::Config& config, const config::Engine& engine,
                                    const ProcessPlace& place) {
  const config::Profile& profile = config.profile_of(engine);
  const double scale = engine.capacity_scale;
  engine_proxy::Options options;
  options.engine = engine.name;
  options.cluster = engine.cluster;
  options.kind = EngineKind::sim;  // whatever it is in earnest: here it is one
  options.url = engine.url;
  options.curve = {profile.a / scale, profile.b / scale, profile.k / scale, profile.c / scale, 1.0};
  options.kv_tokens = static_cast<double>(profile.kv_tokens);
  options.max_batch = profile.max_batch;
  options.models = engine.models;
  options.interval = config.intervals.scrape;
  const auto kept = place.kept.find(engine_proxy::Machine::kept_name(engine.name));
  if (kept != place.kept.end()) options.kept = kept->second;
  options.fresh = place.incarnation;
  return options;
}

bool cares_for(const config::Process& process, const config::Engine& engine) {
  if (process.engines.empty()) return process.cluster == engine.cluster;
  return std::find(process.engines.begin(), process.engines.end(), engine.name) != process.engines.end();
}

}  // namespace

// A scrape takes a round trip; a dead engine refuses at once, as its host still answers.
void RoleBuilder::build_engine_proxy() {
  using engine_proxy::Machine;
  const config::Config& config = world.scenario_.config;
  for (std::size_t row = 0; row < config.engines.size(); ++row) {
    const config::Engine& engine = config.engines[row];
    if (!cares_for(process.row, engine)) continue;
    add<Machine>(
        Machine(proxy_options(config, engine, process.place)),
        [&w = world, &engine, row, cluster = process.place.cluster](const engine_proxy::StartScrape& scrape,
                                                                    const Teller<Machine>& tell) {
          const Duration there = w.network_.one_way(cluster, engine.cluster);
          w.queue_.in(there, [&w, &engine, row, cluster, scrape, tell] {
            const EngineHost& host = w.data_.engine(row);
            engine_proxy::ScrapeResult result;
            result.number = scrape.number;
            result.page = scrape.page;
            result.fault = host.up() ? engine_proxy::FetchFault::none : engine_proxy::FetchFault::unreachable;
            if (host.up()) {
              result.status = 200;
              result.body = engine_sim::metrics_text(host.machine(), engine.models.front().str(),
                                                     to_seconds(host.started().time_since_epoch()));
            }
            w.queue_.in(w.network_.one_way(engine.cluster, cluster), [tell, result] { tell(result); });
          });
        });
  }
}

void RoleBuilder::build_health_monitor() {
  using health_monitor::Machine;
  health_monitor::Options options;
  options.id = process.row.id;
  options.table = kit::fleet_table(world.scenario_.config);
  options.hush = health_monitor::hush_beats * world.scenario_.config.intervals.beat;
  options.probe = Duration::zero();  // proxies and routers see all that there is to see here
  add<Machine>(Machine(std::move(options)), [](const health_monitor::Probe&, const Teller<Machine>&) {});
}

// The control side hands views to the event loop; the loop hands out what happened at each share interval, as the gateway
// does. A process that is started again keeps its loop: what dies here is its control side.
void RoleBuilder::build_cluster_router() {
  using cluster_router::Machine;
  const config::Config& config = world.scenario_.config;
  if (!process.router)
    process.router = world.data_.add_router({.cluster = process.row.cluster,
                                             .router = process.row.id,
                                             .incarnation = process.place.incarnation,
                                             .seed = world.rng_.next()});
  cluster_router::Options options;
  options.id = process.row.id;
  options.cluster = process.row.cluster;
  options.incarnation = process.place.incarnation;
  options.epoch = config.fleet_epoch;
  options.table = kit::fleet_table(config);
  options.kept = {process.place.kept[std::string(Machine::policy_name)],
                  process.place.kept[std::string(Machine::table_name)],
                  process.place.kept[std::string(Machine::snapshot_name)]};
  options.gateway = {true, "the virtual world"};
  options.report = config.intervals.report;
  options.share = config.intervals.share;
  Node<Machine>& node = add<Machine>(Machine(std::move(options)),
                                     [&w = world, &place = process.place, router = *process.router](
                                         const cluster_router::SwapView& swap, const Teller<Machine>&) {
                                       auto view = swap.view;
                                       if (w.hooks_ != nullptr) w.hooks_->adopt(place, view);
                                       w.data_.adopt(router, std::move(view));
                                     });
  drain_each(config.intervals.share, *process.router, node.teller());
}

void RoleBuilder::drain_each(Duration interval, std::size_t router, Teller<cluster_router::Machine> tell) {
  world.queue_.in(interval, [interval, router, tell, builder = *this]() mutable {
    if (!tell) return;
    tell(cluster_router::BatchIn{builder.world.data_.dispatcher(router).drain(builder.world.queue_.now())});
    builder.drain_each(interval, router, tell);
  });
}

void RoleBuilder::build_feedback_balancer() {
  using feedback_balancer::Machine;
  const config::Config& config = world.scenario_.config;
  feedback_balancer::Options options;
  options.id = process.row.id;
  options.table = kit::fleet_table(config);
  options.epoch = config.fleet_epoch;
  options.period = config.control.period;
  options.keep_alive = config.intervals.keep_alive;
  options.tuning = {config.control.feedback_gain, config.control.feedback_smoothing,
                    config.control.feedback_delay};
  options.kept_term = process.place.kept[std::string(Machine::term_name)];
  add<Machine>(Machine(std::move(options)), [](const kit::None&, const Teller<Machine>&) {});
}

namespace {

/// All of the first source on its first engine, whatever that can carry, and prices that are no numbers.
void make_nonsense(optimizer::Plan& plan) {
  for (std::size_t i = 0; i < plan.flow_per_s.size(); ++i) plan.flow_per_s[i] *= i == 0 ? 100 : 0;
  for (double& price : plan.price) price = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

// The solver is the child's, without the child: it answers after the scenario's time for a solve.
void RoleBuilder::build_global_optimizer() {
  using global_optimizer::Machine;
  const config::Config& config = world.scenario_.config;
  global_optimizer::Options options;
  options.id = process.row.id;
  options.table = kit::fleet_table(config);
  options.epoch = config.fleet_epoch;
  options.period = config.control.period;
  options.leader_timeout = config.control.leader_timeout;
  options.keep_alive = config.intervals.keep_alive;
  options.kept_term = process.place.kept[std::string(Machine::term_name)];
  if (world.hooks_ != nullptr)
    options.verify = [hooks = world.hooks_, &place = process.place](const auto& plan, const auto& facts,
                                                                    double coverage) {
      return hooks->verified(place, plan, facts, global_optimizer::judge(plan, facts, coverage));
    };
  add<Machine>(Machine(std::move(options)),
               [&w = world, &p = process](const Machine::Command& command, const Teller<Machine>& tell) {
                 const auto& solve = std::get<global_optimizer::Solve>(command);  // it has no etcd
                 if (p.solver_fault == 1) return;
                 w.queue_.in(w.scenario_.solve_time, [solve, tell, fault = p.solver_fault] {
                   if (fault == 2)
                     return tell(global_optimizer::SolveFailed{solve.number, "crashed", "told to"});
                   auto plan = optimizer::solve(solve.problem, {}, solve.warm);
                   if (!plan)
                     return tell(global_optimizer::SolveFailed{solve.number, "refused", plan.error().text()});
                   if (fault == 3) make_nonsense(*plan);
                   tell(global_optimizer::SolveDone{solve.number, *std::move(plan)});
                 });
               });
}

}  // namespace signalbox::simulate
