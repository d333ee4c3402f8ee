#include "tools/bench/command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/decide/decide.hpp"
#include "tools/bench/engine.hpp"
#include "tools/bench/limits/limits.hpp"
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

std::string solver_program() {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("signalbox-solver").string();
}

/// The solver is a program of its own: it gets the rest of the line.
void add_solve(CLI::App& bench) {
  CLI::App& command = *bench.add_subcommand(
      "solve",
      "CPU time, gap and memory of solves of invented fleets, as JSON; 'bench solve --help' says more");
  command.set_help_flag();
  command.prefix_command();
  command.callback([&command] {
    const std::string program = solver_program();
    std::vector<std::string> words{program, "bench"};
    for (const std::string& word : command.remaining()) words.push_back(word);
    std::vector<char*> line;
    for (std::string& word : words) line.push_back(word.data());
    line.push_back(nullptr);
    ::execv(program.c_str(), line.data());
    cli::finish("bench solve",
                fail(ErrorKind::io, "cannot run " + program, {}, "build or install signalbox-solver"));
  });
}

/// "clusters x engines x models", like 50x2000x20.
bool read_size(const std::string& text, LimitsLoad& load) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint32_t* part : {&load.clusters, &load.engines, &load.models}) {
    if (part != &load.clusters && (at == end || *at++ != 'x')) return false;
    const auto [next, error] = std::from_chars(at, end, *part);
    if (error != std::errc() || *part == 0) return false;
    at = next;
  }
  return at == end && load.engines >= load.models && load.engines <= 100'000;
}

void add_limits(CLI::App& bench) {
  auto load = std::make_shared<LimitsLoad>();
  auto size = std::make_shared<std::string>("50x2000x20");
  CLI::App& command = *bench.add_subcommand(
      "limits", "CPU time of a plan's rows and of their verification under limits of the policy, as JSON");
  command.add_option("SIZE", *size, "clusters x engines x models of an invented fleet")
      ->capture_default_str();
  command.add_option("--utilisation", load->utilisation, "planned load over capacity")
      ->check(CLI::Range(0.01, 5.0))
      ->capture_default_str();
  command.add_option("--repeat", load->repeat, "the median is said")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.callback([load, size] {
    if (!read_size(*size, *load))
      throw CLI::ValidationError("SIZE",
                                 "'" + *size + "' is not clusters x engines x models, like 50x2000x20");
    load->solver = solver_program();
    cli::finish("bench limits", bench_limits(*load));
  });
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
      "  signalbox bench solve 50x2000x20 --utilisation 0.9 --step cold --step engines_-2%\n"
      "  signalbox bench limits 50x2000x20\n"
      "  signalbox bench engine --ports 8001,8002\n"
      "  signalbox bench streams --url 127.0.0.1:8001 --at-once 1000 --total 1000 --events 20 --every-us "
      "50000");
  bench.require_subcommand(1);
  add_decide(bench);
  add_solve(bench);
  add_limits(bench);
  add_engine(bench);
  add_streams(bench);
}

}  // namespace signalbox::bench
