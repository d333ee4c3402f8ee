#include "tools/observe/interrupt.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <csignal>

namespace signalbox::observe {
namespace {
volatile std::sig_atomic_t flag = 0;
void set_flag(int) { flag = 1; }
}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = set_flag;  // without SA_RESTART: a wait ends
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return flag != 0; }

void pause(Duration longest) {
  if (flag != 0 || longest <= Duration::zero()) return;
  ::poll(nullptr, 0, static_cast<int>(std::max<std::int64_t>(1, longest / 1ms)));
}

}  // namespace signalbox::observe
