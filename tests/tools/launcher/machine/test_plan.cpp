#include <boost/test/unit_test.hpp>

#include "tools/launcher/machine/plan.hpp"

using namespace signalbox;

namespace {

config::Config small_fleet() {
  config::Config config;
  config.port_base = 20000;
  config.state_dir = "/state";
  config.keys_dir = "/keys";
  config.profiles.push_back({"small", 0.01, 0.001, 1e-7, 1e-5, 65536, 32, 512, {}});
  config::Engine engine;
  engine.name = EngineName("e1");
  engine.url = "http://127.0.0.1:20010";
  engine.models = {ModelName("large"), ModelName("small")};
  engine.simulated.emplace();
  engine.simulated->speed = 2.0, engine.simulated->seed = 7;
  config.engines.push_back(engine);
  engine.name = EngineName("real");
  engine.simulated.reset();
  config.engines.push_back(engine);
  for (const auto& [role, id] : {std::pair{"cluster-router", "router-a"},
                                 {"health-monitor", "monitor"},
                                 {"global-optimizer", "optimizer-1"},
                                 {"policy-keeper", "keeper"}}) {
    config::Process process;
    process.role = role;
    process.id = ProcessName(id);
    config.processes.push_back(process);
  }
  config.buses.push_back({ProcessName("bus-1"), "tcp://127.0.0.1:20001", "tcp://127.0.0.1:20002", "", {}});
  return config;
}

}  // namespace

BOOST_AUTO_TEST_CASE(processes_come_in_the_order_in_which_they_need_each_other) {
  std::string order;
  for (const auto& process : launcher::plan_processes(small_fleet(), "/fleet.toml"))
    order += process.name + " ";
  BOOST_CHECK_EQUAL(order, "bus-1 e1 keeper monitor optimizer-1 router-a ");
}

BOOST_AUTO_TEST_CASE(every_process_is_told_the_same_fleet) {
  const auto plan = launcher::plan_processes(small_fleet(), "/fleet.toml");
  const std::vector<std::string> expected{"run",         "cluster-router", "--id",        "router-a",
                                          "--config",    "/fleet.toml",    "--port-base", "20000",
                                          "--state-dir", "/state",         "--keys-dir",  "/keys"};
  BOOST_CHECK(plan.back().arguments == expected);
}

BOOST_AUTO_TEST_CASE(a_simulated_engine_has_its_profile_and_its_own_speed) {
  const auto plan = launcher::plan_processes(small_fleet(), "/fleet.toml");
  std::string line;
  for (const auto& argument : plan[1].arguments) line += argument + " ";
  BOOST_CHECK_EQUAL(
      line,
      "engine-sim --listen 127.0.0.1:20010 --name e1 --models large,small --a 0.01 --b 0.001 --k 1e-07 "
      "--c 1e-05 --speed 2 --kv-tokens 65536 --max-batch 32 --step-tokens 512 --seed 7 ");
  BOOST_CHECK(!plan[1].beats);
}
