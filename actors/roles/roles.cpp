#include "actors/roles/roles.hpp"

#include "actors/cluster_router/role.hpp"
#include "actors/engine_proxy/role.hpp"
#include "actors/feedback_balancer/role.hpp"
#include "actors/global_optimizer/role.hpp"
#include "actors/health_monitor/role.hpp"
#include "actors/policy_keeper/role.hpp"

namespace signalbox::actors {

std::span<const kit::RoleEntry> roles() {
  static constexpr kit::RoleEntry all[] = {
      {Role::engine_proxy, sentence_of(Role::engine_proxy), engine_proxy::start},
      {Role::global_optimizer, sentence_of(Role::global_optimizer), global_optimizer::start},
      {Role::cluster_router, sentence_of(Role::cluster_router), cluster_router::start},
      {Role::health_monitor, sentence_of(Role::health_monitor), health_monitor::start},
      {Role::feedback_balancer, sentence_of(Role::feedback_balancer), feedback_balancer::start},
      {Role::policy_keeper, sentence_of(Role::policy_keeper), policy_keeper::start},
  };
  return all;
}

}  // namespace signalbox::actors
