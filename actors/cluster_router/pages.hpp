// What the router adds to its process's operator port: /explain/DECISION, /snapshot, and /v1/route for other proxies.
#pragma once

#include <memory>

#include "actors/cluster_router/gateway/gateway_thread.hpp"
#include "actors/kit/process.hpp"

namespace signalbox::cluster_router {

/// How long an event loop may take to answer a question of the operators' thread.
inline constexpr Duration question_limit = 1s;

void add_pages(kit::Process& process, const std::shared_ptr<gateway::GatewayThread>& thread);

}  // namespace signalbox::cluster_router
