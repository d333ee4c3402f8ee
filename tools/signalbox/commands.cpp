#include "tools/signalbox/commands.hpp"

#include "tools/api_keys/command.hpp"
#include "tools/bench/command.hpp"
#include "tools/console/command.hpp"
#include "tools/engine_sim/command.hpp"
#include "tools/exporter/command.hpp"
#include "tools/keys/command.hpp"
#include "tools/launcher/command.hpp"
#include "tools/observe/command.hpp"
#include "tools/order/command.hpp"
#include "tools/policy/command.hpp"
#include "tools/run/command.hpp"
#include "tools/simulate/start/command.hpp"
#include "tools/top/command.hpp"

namespace signalbox {

void add_commands(CLI::App& app) {
  launcher::add_up(app);
  launcher::add_status(app);
  launcher::add_restart(app);
  launcher::add_stop(app);
  launcher::add_down(app);
  order::add_drain(app);
  order::add_order(app);
  run::add_run(app);
  observe::add_tap(app);
  observe::add_inspect(app);
  observe::add_explain(app);
  top::add_top(app);
  console::add_console(app);
  exporter::add_exporter(app);
  policy_command::add_policy(app);
  keys::add_keys(app);
  api_keys::add_api_keys(app);
  engine_sim::add_engine_sim(app);
  bench::add_bench(app);
  simulate::add_simulate(app);
}

}  // namespace signalbox
