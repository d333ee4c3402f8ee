#include "tools/top/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>

#define NCURSES_NOMACROS
#include <curses.h>

namespace signalbox::top {
namespace {

enum Pair : short { pair_good = 1, pair_warn, pair_bad, pair_head };

int attributes_of(Look look) {
  const bool colours = ::has_colors();
  const auto pair = [&](Pair p) { return colours ? static_cast<int>(COLOR_PAIR(p)) : 0; };
  switch (look) {
    case Look::plain: return A_NORMAL;
    case Look::dim: return A_DIM;
    case Look::bold: return A_BOLD;
    case Look::head: return A_REVERSE | pair(pair_head);
    case Look::good: return pair(pair_good);
    case Look::warn: return pair(pair_warn) | A_BOLD;
    case Look::bad: return pair(pair_bad) | A_BOLD;
    case Look::chosen: return A_REVERSE | A_BOLD;
  }
  return A_NORMAL;
}

int key_of(int code) {
  switch (code) {
    case KEY_UP: return key_up;
    case KEY_DOWN: return key_down;
    case KEY_PPAGE: return key_page_up;
    case KEY_NPAGE: return key_page_down;
    case KEY_HOME: return key_home;
    case KEY_END: return key_end;
    case KEY_ENTER:
    case '\n':
    case '\r': return key_enter;
    case KEY_BACKSPACE:
    case 127:
    case 8: return key_back;
    case 27: return key_escape;
    default: return code;
  }
}

}  // namespace

Result<Terminal> Terminal::open() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    return fail(ErrorKind::unavailable, "no terminal is here", "top",
                "signalbox inspect shows the same as text");
  std::setlocale(LC_ALL, "");
  if (::newterm(nullptr, stdout, stdin) == nullptr)
    return fail(ErrorKind::unavailable, "the terminal's type is not known", "TERM", "try TERM=xterm");
  ::set_escdelay(25);
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::curs_set(0);
  if (::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(pair_good, COLOR_GREEN, -1);
    ::init_pair(pair_warn, COLOR_YELLOW, -1);
    ::init_pair(pair_bad, COLOR_RED, -1);
    ::init_pair(pair_head, COLOR_CYAN, -1);
  }
  return Terminal();
}

Terminal::~Terminal() {
  if (active_) ::endwin();
}

Size Terminal::size() const {
  return {static_cast<std::size_t>(std::max(1, ::getmaxx(stdscr))),
          static_cast<std::size_t>(std::max(1, ::getmaxy(stdscr)))};
}

void Terminal::show(const Screen& screen) {
  ::erase();
  for (std::size_t y = 0; y < screen.lines.size(); ++y) {
    ::move(static_cast<int>(y), 0);
    for (const Span& span : screen.lines[y]) {
      ::attrset(attributes_of(span.look));
      ::addnstr(span.text.c_str(), static_cast<int>(span.text.size()));
    }
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

std::optional<int> Terminal::key(Duration longest) {
  ::timeout(static_cast<int>(longest / 1ms));
  const int code = ::getch();
  if (code == ERR) return std::nullopt;
  return key_of(code);
}

}  // namespace signalbox::top
