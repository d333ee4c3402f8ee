// What a role's start function finds: one process of the fleet with its bus, its state folder and its actor system.
#pragma once

#include <atomic>
#include <caf/all.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/kit/host.hpp"
#include "actors/kit/state_dir.hpp"
#include "actors/kit/watchdog.hpp"
#include "cluster-config/schema/topology.hpp"
#include "messages/bus/node.hpp"

namespace signalbox::kit {

struct ProcessOptions {
  Role role = Role::tool;
  config::Config config;
  ProcessName id;
  std::string config_file;
  config::Overrides overrides;
  std::string program;  ///< path of this binary
  std::string log_level = "info";
};

/// One page of the operators' port that a role adds; `serve` runs on that port's thread.
struct OperatorRequest {
  std::string rest;  ///< what follows the page's path
  std::vector<std::pair<std::string, std::string>> fields;
  std::string_view body;
};
struct OperatorAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};
struct OperatorPage {
  std::string method;
  std::string path;  ///< a prefix
  std::function<OperatorAnswer(const OperatorRequest& request)> serve;
};

/// Built once; everything but publish(), log() and give_up() belongs to the main thread.
class Process {
 public:
  /// Opens the state folder, begins a new incarnation, loads the keys, starts the actor system. Errors: io, denied,
  /// not_found, each with what to do.
  static Result<std::unique_ptr<Process>> open(ProcessOptions options);
  ~Process();

  const config::Config& config() const { return options_.config; }
  const ProcessOptions& options() const { return options_; }
  const ProcessName& id() const { return options_.id; }
  const ClusterName& cluster() const { return identity_.cluster; }
  const Incarnation& incarnation() const { return incarnation_; }
  const StateDir& state() const { return *state_; }
  const std::optional<bus::Keyring>& keyring() const { return keyring_; }
  bus::Identity identity() const { return identity_; }
  Board& board() const { return *board_; }
  std::shared_ptr<Ports> ports() const { return ports_; }

  /// Hosts a machine. It hears the messages of its role_info(), or only these topic prefixes.
  template <Machine M>
  Teller<M> host(std::string name, std::function<M()> make,
                 std::function<void(const typename M::Command&, const Teller<M>&)> perform,
                 std::vector<std::string> prefixes = heard_by(M::role_info())) {
    HostOptions<M> host;
    host.name = std::move(name);
    host.make = std::move(make);
    host.perform = std::move(perform);
    host.ports = ports_;
    host.board = board_;
    host.give_up = [this](const std::string& reason) { give_up(reason); };
    const caf::actor actor = system_->spawn<Host<M>>(std::move(host));
    listeners_.push_back({actor, std::move(prefixes)});
    return Teller<M>(actor);
  }
  static std::vector<std::string> heard_by(const RoleInfo& info);

  /// Called in order of registration when the process shall stop (each may take its time), and on SIGHUP.
  void on_stop(std::function<void()> task) { stop_tasks_.push_back(std::move(task)); }
  void on_reload(std::function<void()> task) { reload_tasks_.push_back(std::move(task)); }

  void add_page(OperatorPage page) { pages_.push_back(std::move(page)); }
  const std::vector<OperatorPage>& pages() const { return pages_; }
  /// Adds to /metrics; called on the operators' thread.
  void add_metrics(std::function<std::string()> text) { metrics_.push_back(std::move(text)); }
  const std::vector<std::function<std::string()>>& metrics() const { return metrics_; }

  /// A loop beside the actors' that must turn: when it hangs, beats say so and the supervisor starts the process anew.
  void watch_loop(LoopWatch::LastTurn last_turn) { loops_.add(std::move(last_turn)); }

  /// Said in beats: where clients and operators find this process.
  void set_endpoint(std::string endpoint) { endpoint_ = std::move(endpoint); }

  /// It was told to stop and finishes what it has.
  bool stopping() const { return stopping_; }
  /// Joins the bus, starts the actors, and serves signals until SIGTERM, SIGINT or give_up(). Returns the exit code.
  int run();
  /// Ends the process with a failure; thread-safe.
  void give_up(const std::string& reason);
  void log(schema::Severity severity, std::string_view event, std::string_view text) const;
  bus::NodeStats bus_stats() const;
  /// As the beat says it; for /metrics and /readyz too.
  schema::Beat beat(Duration loop_lag) const;

 private:
  void turned(Duration loop_lag) const;
  class BusPorts;
  struct Listener {
    caf::actor actor;
    std::vector<std::string> prefixes;
  };

  explicit Process(ProcessOptions options);
  Status join_bus();
  void dispatch(const schema::DeliveryPtr& delivery) const;
  void serve_signals();

  ProcessOptions options_;
  bus::Identity identity_;
  Incarnation incarnation_;
  std::optional<StateDir> state_;
  std::optional<bus::Keyring> keyring_;
  std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::shared_ptr<BusPorts> bus_;
  std::shared_ptr<Ports> ports_;  ///< the same
  caf::actor_system_config system_config_;
  std::unique_ptr<caf::actor_system> system_;
  std::vector<Listener> listeners_;  ///< complete before the bus is joined, then only read
  std::vector<std::function<void()>> stop_tasks_, reload_tasks_;
  std::vector<OperatorPage> pages_;
  std::vector<std::function<std::string()>> metrics_;
  std::string endpoint_;
  Instant started_;
  Watchdog watchdog_ = Watchdog::from_environment();
  LoopWatch loops_;
  std::atomic<bool> failed_{false}, stopping_{false};
};

/// The monotonic time, on the time line of the actors and the bus.
Instant monotonic_now();
/// What makes a monotonic time Unix time, as the clocks stand now.
Duration unix_offset();

/// One line per role in actors/roles: what it is and how its actors are started.
struct RoleEntry {
  Role role;
  std::string_view sentence;
  Status (*start)(Process& process);
};

}  // namespace signalbox::kit
