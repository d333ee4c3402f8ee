#include "actors/feedback_balancer/role.hpp"

#include "actors/feedback_balancer/machine/machine.hpp"

namespace signalbox::feedback_balancer {

namespace {

Options machine_options(const kit::Process& process) {
  const config::Config& config = process.config();
  Options out;
  out.id = process.id();
  out.table = kit::fleet_table(config);
  out.epoch = config.fleet_epoch;
  out.period = config.control.period;
  out.keep_alive = config.intervals.keep_alive;
  out.tuning = {config.control.feedback_gain, config.control.feedback_smoothing,
                config.control.feedback_delay};
  out.kept_term = process.state().read(Machine::term_name);
  return out;
}

}  // namespace

Status start(kit::Process& process) {
  process.host<Machine>(
      "feedback-balancer", [&process] { return Machine(machine_options(process)); },
      [](const kit::None&, const kit::Teller<Machine>&) {});
  return {};
}

}  // namespace signalbox::feedback_balancer
