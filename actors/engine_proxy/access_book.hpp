// How the engines are reached, for all who fetch from them. Read anew when the process reloads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/engine_proxy/fetcher.hpp"
#include "actors/kit/process.hpp"
#include "cluster-config/schema/topology.hpp"

namespace signalbox::engine_proxy {

/// Thread-safe.
class AccessBook {
 public:
  /// Of all engines that the process's configuration names, loaded now and again whenever it reloads.
  static Result<std::shared_ptr<AccessBook>> follow(kit::Process& process);

  Fetcher::Access of(const EngineName& engine) const;
  /// What was known before stays for an engine whose files cannot be read. Errors: the first one.
  Status load(const std::vector<config::Engine>& engines);

 private:
  mutable std::mutex mutex_;
  std::map<EngineName, Fetcher::Access> by_engine_;
};

}  // namespace signalbox::engine_proxy
