#include "tools/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace signalbox::cli {

Terminal terminal() {
  Terminal out;
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    out = {size.ws_col, size.ws_row};
  if (const char* columns = std::getenv("COLUMNS")) {
    const std::string_view text(columns);
    std::from_chars(text.data(), text.data() + text.size(), out.columns);
  }
  return out;
}

void put(std::FILE* out, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
  std::clearerr(out);
}

}  // namespace signalbox::cli
