#include "tools/order/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/exit.hpp"
#include "tools/order/order.hpp"

namespace signalbox::order {
namespace {

struct Options {
  cli::FleetOptions fleet;
  GiveOptions give;
  std::string target = "all", engine, from, to;
  bool undo = false;
};

void add_common(CLI::App& command, Options& options) {
  cli::add_fleet_options(command, options.fleet);
  command.add_option("--wait", options.give.wait_s, "seconds to wait for receipts")->capture_default_str();
}

void send(const std::string& name, Options& options, schema::OrderKind kind) {
  schema::Order& order = options.give.order;
  order.kind = kind;
  order.target = ProcessName(options.target);
  order.engine = EngineName(options.engine);
  order.from = ClusterName(options.from);
  order.to = ClusterName(options.to);
  const auto fleet = cli::open_fleet(options.fleet);
  cli::finish(name, fleet ? give(*fleet, options.give) : Status(tl::unexpected(fleet.error())));
}

}  // namespace

void add_drain(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("drain", "Give an engine nothing new; what it has it finishes");
  command.footer(
      "Exit codes: 1 nobody carried it out, 2 no such engine, 3 nobody answered.\n\n"
      "Examples:\n  signalbox drain a100-1\n  signalbox drain a100-1 --undo");
  auto options = std::make_shared<Options>();
  command.add_option("ENGINE", options->engine, "the engine")->required();
  command.add_flag("--undo", options->undo, "let it serve again");
  add_common(command, *options);
  command.callback([options] {
    send("drain", *options,
         options->undo ? schema::OrderKind::undrain_engine : schema::OrderKind::drain_engine);
  });
}

void add_order(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("order", "Other orders to the fleet");
  command.require_subcommand(1);
  command.footer(
      "Examples:\n"
      "  signalbox order network west east 0.08    the round trip from west to east is 80 ms now\n"
      "  signalbox order reload                    every process reads its configuration again\n"
      "  signalbox order resign optimizer-1        it gives up leadership");
  const auto add = [&](const char* name, const char* sentence, schema::OrderKind kind) {
    CLI::App& sub = *command.add_subcommand(name, sentence);
    auto options = std::make_shared<Options>();
    add_common(sub, *options);
    sub.callback([options, name = fmt::format("order {}", name), kind] { send(name, *options, kind); });
    return std::pair<CLI::App*, std::shared_ptr<Options>>(&sub, options);
  };
  {
    const auto [sub, options] = add("network", "Correct the declared round trip between two clusters",
                                    schema::OrderKind::set_network);
    sub->add_option("FROM", options->from, "where requests enter")->required();
    sub->add_option("TO", options->to, "the engines' cluster")->required();
    sub->add_option("RTT", options->give.order.value, "seconds")->required()->check(CLI::Range(0.0, 10.0));
  }
  {
    const auto [sub, options] =
        add("reload", "Read the configuration again", schema::OrderKind::reload_config);
    sub->add_option("PROCESS", options->target, "one process; all of them by default");
  }
  {
    const auto [sub, options] = add("resign", "Give up leadership", schema::OrderKind::resign);
    sub->add_option("PROCESS", options->target, "the optimizer")->required();
  }
}

}  // namespace signalbox::order
