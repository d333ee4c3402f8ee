// One process of the fleet in the virtual world.
#pragma once

#include "actors/cluster_router/machine/machine.hpp"
#include "tools/simulate/world/world.hpp"

namespace signalbox::simulate {

struct World::Process {
  Process(const config::Process& declared, EventQueue& queue, EventQueue::Act on_beat)
      : row(declared), beat(queue, std::move(on_beat)) {}

  const config::Process& row;
  ProcessPlace place;
  Role role = Role::tool;
  MemberId beat_author = 0;
  std::vector<std::unique_ptr<AnyNode>> nodes;  ///< empty: it does not run
  Alarm beat;
  Instant started;
  std::optional<std::size_t> router;  ///< row in the data plane
  int solver_fault = 0;               ///< as HappeningKind::solver

  bool up() const { return !nodes.empty(); }
};

/// Gives a process the machines of its role, with all that their commands do to the world.
struct RoleBuilder {
  World& world;
  World::Process& process;

  /// False: the world does not know the role.
  bool build();

  void build_policy_keeper();
  void build_engine_proxy();
  void build_health_monitor();
  void build_cluster_router();
  void build_global_optimizer();
  void build_feedback_balancer();
  void drain_each(Duration interval, std::size_t router, Teller<cluster_router::Machine> tell);

  template <kit::Machine M>
  Node<M>& add(M machine, typename Node<M>::Act act);
  MemberId new_member();
};

}  // namespace signalbox::simulate
