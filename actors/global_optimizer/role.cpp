#include "actors/global_optimizer/role.hpp"

#include <algorithm>
#include <filesystem>

#include "actors/global_optimizer/etcd/client.hpp"
#include "actors/global_optimizer/machine/machine.hpp"
#include "actors/global_optimizer/solver_thread.hpp"
#include "actors/kit/fleet/table.hpp"

namespace signalbox::global_optimizer {

namespace {

/// Beside this binary, where the build and the packages put it.
std::string solver_program(const kit::Process& process) {
  return std::filesystem::path(process.options().program).replace_filename("signalbox-solver").string();
}

optimizer::SolverChildOptions child_options(const kit::Process& process) {
  const config::Control& control = process.config().control;
  optimizer::SolverChildOptions out;
  out.program = solver_program(process);
  if (control.solve_memory_mib > 0) out.memory_bytes = control.solve_memory_mib << 20;
  out.deadline = 2 * control.period;
  return out;
}

optimizer::SolveOptions solve_options(const kit::Process& process) {
  optimizer::SolveOptions out;
  if (process.config().control.solve_iterations > 0)
    out.max_rounds = process.config().control.solve_iterations;
  return out;
}

Options machine_options(const kit::Process& process) {
  const config::Config& config = process.config();
  Options out;
  out.id = process.id();
  out.table = kit::fleet_table(config);
  out.epoch = config.fleet_epoch;
  out.period = config.control.period;
  // Silence means something only over several words that should have come.
  out.leader_timeout = std::max(config.control.leader_timeout,
                                3 * std::min(config.intervals.beat, config.intervals.keep_alive));
  out.keep_alive = config.intervals.keep_alive;
  out.kept_term = process.state().read(Machine::term_name);
  if (config.control.coordination == config::Coordination::etcd)
    out.etcd = TenureOptions{config.control.lease};
  return out;
}

/// Null without etcd.
std::shared_ptr<EtcdClient> etcd_client(const kit::Process& process) {
  const config::Control& control = process.config().control;
  if (control.coordination != config::Coordination::etcd) return nullptr;
  return std::make_shared<EtcdClient>(EtcdOptions{control.etcd, control.etcd_authorities,
                                                  control.etcd_certificate, control.etcd_key,
                                                  etcd_keys(process.config().fleet), process.id().str()});
}

}  // namespace

Status start(kit::Process& process) {
  const std::string solver = solver_program(process);
  if (!std::filesystem::exists(solver))
    return fail(ErrorKind::not_found, "the solver's program is missing", solver,
                "build or install signalbox-solver");
  auto thread = std::make_shared<SolverThread>(child_options(process), solve_options(process));
  process.host<Machine>(
      "global-optimizer", [&process] { return Machine(machine_options(process)); },
      [thread, etcd = etcd_client(process)](const Machine::Command& command,
                                            const kit::Teller<Machine>& tell) {
        if (const auto* solve = std::get_if<Solve>(&command))
          thread->submit(*solve, [tell](Machine::Input answer) { tell(std::move(answer)); });
        else
          etcd->ask(std::get<AskEtcd>(command), [tell](EtcdAnswer answer) { tell(std::move(answer)); });
      });
  return {};
}

}  // namespace signalbox::global_optimizer
