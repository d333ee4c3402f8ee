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

  /// Before run(); they outlive it.
  void set_hooks(Hooks& hooks);
  Instant now() const { return queue_.now(); }
  /// A process as it is now.
  struct ProcessNow {
    const ProcessPlace& place;
    Role role;
    bool up;
    kit::Standing standing;  ///< as its beat says it; empty when down
  };
  std::vector<ProcessNow> processes() const;
  const config::Config& config() const { return scenario_.config; }
  const EngineHost& engine(std::size_t row) const { return data_.engine(row); }

 private:
  struct Process;
  friend struct RoleBuilder;

  void start(Process& process);
  void stop(Process& process);
  void say_beat(Process& process);
  kit::Standing standing_of(const Process& process) const;
  Passage pass(MemberId from, MemberId to);
  void watch(const schema::Message& message, const schema::Envelope& envelope);
  void note(LogEntry entry);

  void schedule_happenings();
  void happen(const Happening& happening);
  void happen_to_process(const Happening& happening);
  void say_network(const Happening& happening);
  void schedule_arrival(std::size_t load);
  void arrive(std::size_t load);
  void take_sample();

  const Scenario& scenario_;
  Rng rng_, fault_rng_;
  EventQueue queue_;
  Network network_;
  Recorder recorder_;
  Bus bus_;
  DataPlane data_;
  std::vector<std::unique_ptr<Process>> processes_;
  static constexpr MemberId operator_ = 0;
  /// Where a member of the bus is.
  struct Seat {
    ClusterName cluster;
    const ProcessPlace* place = nullptr;  ///< null: an operator's
  };
  std::vector<Seat> seats_;  ///< by MemberId
  std::uint64_t orders_ = 0;
  std::vector<LoadSource> sources_;
  std::vector<std::uint64_t> arrival_wishes_;                 ///< by load: an older wish is void
  std::map<ClusterName, schema::RoutingSnapshot> snapshots_;  ///< in force, by cluster
  std::uint64_t snapshots_said_ = 0;
  std::vector<std::string> warnings_;
  Hooks* hooks_ = nullptr;
  LinkFaults faults_;
};

}  // namespace signalbox::simulate
