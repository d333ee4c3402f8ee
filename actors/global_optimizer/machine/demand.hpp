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
  double sure_per_s = 0;     ///< in spite of chance: what somebody may be refused for
  double planned_per_s = 0;  ///< an upper quantile for the next periods: what the plan must be right for
  optimizer::RequestShape shape;
  bool measured = false;  ///< else the shape is a guess
};

/// Requests of one class in one cluster that begin alike.
struct HotGroup {
  std::uint64_t group = 0;  ///< as the routers name it
  double prefix_tokens = 0;
  double rate_per_s = 0;
};

class DemandBook {
 public:
  static constexpr Duration group_memory = 20s;
  static constexpr double least_group_rate_per_s = 0.2;  ///< less is not worth a placement
  static constexpr Duration shape_memory = 60s;
  static constexpr Duration bucket = 500ms;  ///< least time that one look at the rates covers
  /// Of a cluster whose routers are not heard any more. They may live on and follow the last plan that they heard, about as
  /// long as this: what they send is still load on the engines.
  static constexpr Duration lifetime = 60s;

  /// Reports under another policy than `policy` are ignored: their rows mean other classes. True if a rate has stepped.
  bool hear(const schema::DemandReport& report, const Incarnation& router, const Digest& policy, Instant now);
  /// Forgets everything: the classes have changed.
  void clear() { *this = {}; }
  Expected of(const ClusterName& cluster, ClassIndex c, Instant now) const;
  /// Ascending by group.
  std::vector<HotGroup> groups_of(const ClusterName& cluster, ClassIndex c, Instant now) const;

 private:
  struct Step {
    double factor = 1;   ///< the rate after it over the one before
    double per_s = 0;    ///< after it
    double seconds = 0;  ///< since it
    static Step of(double before_per_s, const optimizer::Forecast& after);
    bool real() const { return factor > 0 && per_s > 0; }
  };
  /// A rate with the looks that it was last observed by.
  struct Counted {
    optimizer::Forecast rate;
    std::deque<optimizer::Tally> recent;  ///< requests and seconds

    bool observe(double count, double seconds, Instant now);
    /// By the level, or by the latest looks if they are surer of more: a level follows a start from nothing late.
    double sure_per_s() const;
    /// What this is a part of has stepped: so has this, if its own requests since then are likelier after such a step than
    /// without one. It then rests on the requests of all. True if it has followed.
    bool follow(const Step& whole);
  };
  struct ClassDemand : Counted {
    double arrived = 0;                                                    ///< since the last look
    double offered = 0, prompt = 0, finished = 0, cached = 0, output = 0;  ///< decayed over shape_memory
    struct Group {
      double prefix_tokens = 0, requests = 0;  ///< the latter decayed over group_memory
    };
    std::map<std::uint64_t, Group> groups;
    double seconds = 0;  ///< that the groups' requests came in, decayed alike
  };
  struct Cluster {
    Instant first_heard_at = never_yet, heard_at = never_yet;
    Instant looked_at = never_yet;
    std::map<std::uint64_t, Duration>
        told;                 ///< time that the reports since then are about, by each router's life
    Counted all;              ///< of all classes together: what changes for everybody shows there first
    optimizer::Tally unseen;  ///< since the last look at the fleet
    std::map<ClassIndex, ClassDemand> classes;
  };
  static ClassDemand& row_of(Cluster& cluster, ClassIndex c);
  static bool look(Cluster& cluster, Duration covered, Instant now);
  bool look_at_fleet(Instant now);
  static void share_step(Cluster& cluster, const Step& step);
  /// Null if it was never asked for, or not heard of lately.
  const ClassDemand* find(const ClusterName& cluster, ClassIndex c, Instant now) const;
  std::map<ClusterName, Cluster> clusters_;
  optimizer::Forecast fleet_;  ///< of all clusters together, where there are several
};

}  // namespace signalbox::global_optimizer
