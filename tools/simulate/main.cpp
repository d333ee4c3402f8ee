// A program of its own: it links the solver, which the binary that verifies and signs must not.
#include <CLI/CLI.hpp>

#include "tools/cli/exit.hpp"
#include "tools/simulate/command.hpp"

int main(int argc, char** argv) {
  CLI::App app("", "signalbox-simulate");
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
