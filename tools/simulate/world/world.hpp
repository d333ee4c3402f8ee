// The whole fleet in virtual time: every process of the config with its role's machine, the bus between them, the engines
// and the requests. Same scenario, same seed: same report.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tools/simulate/world/bus.hpp"
#include "tools/simulate/world/data_plane.hpp"
#include "tools/simulate/world/node.hpp"
#include "tools/simulate/world/report.hpp"

namespace signalbox::simulate {

class World {
 public:
  /// `scenario` outlives it.
  explicit World(const Scenario& scenario);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Lets the scenario happen and tells what it showed. Once. Processes of roles that the world does
  /// not know are left out, and named among the report's warnings.
  Report run();

  /// For those who want to look at single messages; before run().
  void set_tap(Bus::Tap tap) { tap_ = std::move(tap); }
  /// The same for requests, each when it is over.
  void set_watch(DataPlane::Record watch) { watch_ = std::move(watch); }

 private:
  struct Process;
  friend struct RoleBuilder;

  void start(Process& process);
  void stop(Process& process);
  void say_beat(Process& process);
  std::optional<Duration> delay(MemberId from, MemberId to);
  void watch(const schema::Message& message, const schema::Envelope& envelope);
  void note(LogEntry entry);

  void schedule_happenings();
  void happen(const Happening& happening);
  void say_network(const Happening& happening);
  void schedule_arrival(std::size_t load);
  void arrive(std::size_t load);
  void take_sample();

  const Scenario& scenario_;
  Rng rng_;
  EventQueue queue_;
  Network network_;
  Recorder recorder_;
  Bus bus_;
  DataPlane data_;
  std::vector<std::unique_ptr<Process>> processes_;
  static constexpr MemberId operator_ = 0;
  std::vector<ClusterName> member_clusters_;  ///< by MemberId
  std::uint64_t orders_ = 0;
  std::vector<LoadSource> sources_;
  std::vector<std::uint64_t> arrival_wishes_;                 ///< by load: an older wish is void
  std::map<ClusterName, schema::RoutingSnapshot> snapshots_;  ///< in force, by cluster
  std::uint64_t snapshots_said_ = 0;
  std::vector<std::string> warnings_;
  Bus::Tap tap_;
  DataPlane::Record watch_;
};

}  // namespace signalbox::simulate
