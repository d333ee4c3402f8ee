// What the router adds to its process's operator port: /explain/DECISION, /snapshot, and /v1/route for other proxies.
#pragma once

#include <memory>
#include <string>

#include "actors/cluster_router/gateway/gateways.hpp"
#include "actors/kit/process.hpp"

namespace signalbox::cluster_router {

/// How long an event loop may take to answer a question of the operators' thread.
inline constexpr Duration question_limit = 1s;

/// `ring_file`: where decisions are that no event loop remembers.
void add_pages(kit::Process& process, const std::shared_ptr<gateway::Gateways>& gateways,
               const std::string& ring_file);

}  // namespace signalbox::cluster_router
