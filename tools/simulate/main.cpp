// A program of its own: it links the solver, which the binary that verifies and signs must not.
#include <CLI/CLI.hpp>
#include <filesystem>

#include "tools/cli/exit.hpp"
#include "tools/simulate/command.hpp"

int main(int argc, char** argv) {
  // `signalbox simulate` hands over under its own name.
  CLI::App app("", std::filesystem::path(argc > 0 ? argv[0] : "signalbox-simulate").filename().string());
  signalbox::simulate::set_up_simulate(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& end) {
    return end.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? signalbox::cli::exit_ok : signalbox::cli::exit_usage;
  }
  return signalbox::cli::exit_ok;
}
