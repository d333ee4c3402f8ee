// What every cluster is asked for per class: rates and sizes, from the routers' reports. A cluster's routers are counted
// together: what one no longer gets the others do.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "messages/schema/traffic.hpp"
#include "optimizer/model/forecast.hpp"
#include "optimizer/model/service_curve.hpp"

namespace signalbox::global_optimizer {

/// The demand of one class in one cluster, as a plan should expect it.
struct Expected {
  double rate_per_s = 0;     ///< expected now
  double planned_per_s = 0;  ///< an upper quantile for the next periods: what the plan must be right for
  optimizer::RequestShape shape;
  bool measured = false;  ///< else the shape is a guess
};

class DemandBook {
 public:
  static constexpr Duration shape_memory = 60s;
  static constexpr Duration bucket = 500ms;  ///< least time that one look at the rates covers
  /// Of a cluster whose routers are not heard any more. They may live on and follow the last plan that they heard, about as
  /// long as this: what they send is still load on the engines.
  static constexpr Duration lifetime = 60s;

  /// Reports under another policy than `policy` are ignored: their rows mean other classes.
  void hear(const schema::DemandReport& report, const Digest& policy, Instant now);
  /// Forgets everything: the classes have changed.
  void clear() { clusters_.clear(); }
  Expected of(const ClusterName& cluster, ClassIndex c, Instant now) const;

 private:
  struct ClassDemand {
    optimizer::Forecast rate;
    double arrived = 0;                   ///< since the last look
    std::deque<optimizer::Tally> recent;  ///< the last looks, requests and seconds
    double offered = 0, prompt = 0, finished = 0, cached = 0, output = 0;  ///< decayed over shape_memory
  };
  struct Cluster {
    Instant first_heard_at = never_yet, heard_at = never_yet;
    Instant looked_at = never_yet;
    optimizer::Forecast all;  ///< of all classes together: what changes for everybody shows there first
    std::map<ClassIndex, ClassDemand> classes;
  };
  static ClassDemand& row_of(Cluster& cluster, ClassIndex c);
  static void look(Cluster& cluster, Duration covered, Instant now);
  static void share_step(Cluster& cluster, double before_per_s);
  /// Null if it was never asked for, or not heard of lately.
  const ClassDemand* find(const ClusterName& cluster, ClassIndex c, Instant now) const;
  std::map<ClusterName, Cluster> clusters_;
};

}  // namespace signalbox::global_optimizer
