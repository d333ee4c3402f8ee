#include "tools/bench/command.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "tools/bench/decide/decide.hpp"
#include "tools/bench/engine.hpp"
#include "tools/bench/streams.hpp"
#include "tools/cli/exit.hpp"

namespace signalbox::bench {
namespace {

void add_decide(CLI::App& bench) {
  auto decisions = std::make_shared<std::size_t>(400'000);
  CLI::App& command =
      *bench.add_subcommand("decide", "Nanoseconds of a decision by the size of the fleet, as JSON");
  command.add_option("--decisions", *decisions, "for each size")
      ->check(CLI::Range(1'600, 100'000'000))
      ->capture_default_str();
  command.callback([decisions] { bench_decide(*decisions); });
}

void add_engine(CLI::App& bench) {
  auto ports = std::make_shared<std::vector<std::uint16_t>>(4, std::uint16_t{0});
  CLI::App& command = *bench.add_subcommand(
      "engine", "An engine that costs next to nothing, on several ports, until SIGTERM");
  command.add_option("--ports", *ports, "of 127.0.0.1; 0 takes a free one; printed on stdout")
      ->delimiter(',')
      ->capture_default_str();
  command.callback([ports] { cli::finish("bench engine", serve_engines(*ports)); });
}

void add_streams(CLI::App& bench) {
  auto load = std::make_shared<StreamLoad>();
  CLI::App& command = *bench.add_subcommand(
      "streams",
      "Holds streams of 'bench engine' open through a router and tells how late their events were");
  command.add_option("--url", load->url, "the router, or the engine")->required();
  command.add_option("--path", load->path, "")->capture_default_str();
  command.add_option("--model", load->model, "")->capture_default_str();
  command.add_option("--field", load->fields, "another field of each request, as 'name: value'");
  command.add_option("--at-once", load->at_once, "streams that are open at the same time")
      ->capture_default_str();
  command.add_option("--total", load->total, "streams in all")->capture_default_str();
  command.add_option("--events", load->events, "of a stream")->capture_default_str();
  command.add_option("--every-us", load->every_us, "between two events; 0: as fast as they come")
      ->capture_default_str();
  command.add_option("--prompt-bytes", load->prompt_bytes, "of each request's body")->capture_default_str();
  command.add_option("--longest-s", load->longest_s, "what is not done by then has failed")
      ->capture_default_str();
  command.callback([load] { cli::finish("bench streams", run_streams(*load)); });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App& bench = *app.add_subcommand("bench", "Measures what Signalbox costs");
  bench.footer(
      "tools/bench/compare runs routers side by side with these.\n\n"
      "Examples:\n"
      "  signalbox bench decide\n"
      "  signalbox bench engine --ports 8001,8002\n"
      "  signalbox bench streams --url 127.0.0.1:8001 --at-once 1000 --total 1000 --events 20 --every-us "
      "50000");
  bench.require_subcommand(1);
  add_decide(bench);
  add_engine(bench);
  add_streams(bench);
}

}  // namespace signalbox::bench
