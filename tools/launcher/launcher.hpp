// The parent of a fleet on one machine: starts its processes in order, starts again what ends, shows how they are, and
// stops them in order.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster_router/net/loop.hpp"
#include "actors/cluster_router/net/stream.hpp"
#include "messages/bus/keys.hpp"
#include "messages/bus/node.hpp"
#include "tools/cli/exit.hpp"
#include "tools/cli/fleet.hpp"
#include "tools/cli/state.hpp"
#include "tools/fleet_view/table.hpp"
#include "tools/fleet_view/view.hpp"
#include "tools/launcher/control.hpp"
#include "tools/launcher/machine/plan.hpp"
#include "tools/launcher/machine/supervised.hpp"
#include "tools/launcher/notices.hpp"

namespace signalbox::launcher {

struct LauncherOptions {
  cli::Fleet fleet;
  std::string program;                                              ///< the signalbox binary
  std::function<void(std::string_view line)> note;                  ///< an event, in one line
  std::function<void(const std::vector<fleet_view::Table>&)> show;  ///< each second; may be empty
  bool on_terminal = false;        ///< SIGHUP says then that the terminal is gone
  std::function<void()> on_ready;  ///< once, when every process is ready and every router has a plan
};

class Launcher final : private net::Watcher {
 public:
  explicit Launcher(LauncherOptions options);
  ~Launcher();

  /// Starts the fleet and looks after it until SIGINT, SIGTERM or "stop" on its socket. Errors: what kept it from
  /// starting.
  Status run();

 private:
  struct Child {
    PlannedProcess plan;
    Supervised life;
    cli::ProcessRef process;  ///< pid 0: not running
    Instant signalled{};      ///< when it was last asked to stop
    std::string last_end;
    std::uintmax_t log_before = 0;  ///< how long its log was when it was started
  };

  Status open();
  void join_bus();
  /// Keys were rotated: the launcher takes them as the processes do that it starts from now on.
  void join_bus_with_new_keys();
  void on_ready(std::uint32_t events) override;
  void on_signal(int signal);
  void reap();
  std::string log_of(const Child& child) const;
  std::string what_next(const Child& child) const;
  void start_due();
  void end_hung();
  void start(Child& child);
  void stop(Child& child);
  void begin_stop();
  void go_on_stopping();
  void tick();
  void arm();
  void save_state();
  bool all_ready() const;
  bool is_ready(const Child& child) const;
  const schema::Beat* beat_of(const Child& child) const;
  std::vector<fleet_view::Table> status() const;
  std::string answer(std::string_view question);
  /// Errors: not_found with the names that there are, conflict while the fleet is being stopped.
  Result<Child*> child_called(std::string_view name);
  std::string answer_restart(std::string_view name);
  std::string answer_stop(std::string_view name);

  LauncherOptions options_;
  const config::Config& config_;
  std::vector<Child> children_;
  net::Loop loop_;
  net::Timer tick_;
  net::Fd signals_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<Notices> notices_;
  std::unique_ptr<bus::Node> node_;
  std::optional<bus::Rotated> keys_;  ///< that the bus was joined with
  fleet_view::FleetView view_;
  bool was_ready_ = false;
  std::optional<Stage> stopping_;  ///< the stage that is being stopped
  Instant shown_{};
  Instant due_ = end_of_time;  ///< of the next tick
};

}  // namespace signalbox::launcher
