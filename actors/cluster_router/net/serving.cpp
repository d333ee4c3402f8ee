#include "actors/cluster_router/net/serving.hpp"

#include <fmt/format.h>

#include <csignal>

namespace signalbox::net {

namespace {

Loop* running = nullptr;
void stop(int) {
  if (running != nullptr) running->stop();
}

}  // namespace

StopOnSignal::StopOnSignal(Loop& loop) {
  running = &loop;
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
  std::signal(SIGPIPE, SIG_IGN);
}

StopOnSignal::~StopOnSignal() { running = nullptr; }

std::string listening_at(const Address& asked, const HttpServer& server) {
  return fmt::format("{}:{}", asked.host(), server.port());
}

}  // namespace signalbox::net
