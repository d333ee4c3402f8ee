// What every cluster is asked for per class: rates and sizes, smoothed from the routers' reports.
#pragma once

#include <map>
#include <utility>

#include "messages/schema/traffic.hpp"
#include "optimizer/model/service_curve.hpp"

namespace signalbox::global_optimizer {

/// The demand of one class in one cluster, as a plan should expect it.
struct Expected {
  double rate_per_s = 0;     ///< smoothed
  double planned_per_s = 0;  ///< an upper quantile for the next period: what the plan must be right for
  optimizer::RequestShape shape;
  bool measured = false;  ///< else the shape is a guess
};

class DemandBook {
 public:
  static constexpr Duration memory = 4s;  ///< time constant of the rates
  static constexpr Duration shape_memory = 60s;
  static constexpr Duration lifetime = 10s;  ///< of a router that reports no more

  /// Reports under another policy than `policy` are ignored: their rows mean other classes.
  void hear(const schema::DemandReport& report, const ProcessName& router, const Digest& policy, Instant now);
  /// Forgets everything: the classes have changed.
  void clear() { routers_.clear(); }
  Expected of(const ClusterName& cluster, ClassIndex c, Instant now) const;
  double total_per_s(Instant now) const;

 private:
  struct Sums {
    double rate_per_s = 0;
    double offered = 0, prompt = 0, finished = 0, cached = 0, output = 0;  ///< decayed over shape_memory
  };
  struct Router {
    ClusterName cluster;
    Instant heard_at;
    std::map<ClassIndex, Sums> classes;
    double weight = 0;  ///< of the rates' average so far: 1 once it is warm
  };
  std::map<ProcessName, Router> routers_;
};

}  // namespace signalbox::global_optimizer
