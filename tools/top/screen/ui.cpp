#include "tools/top/screen/ui.hpp"

#include <algorithm>

namespace signalbox::top {

namespace {

template <DescribedEnum E>
E next_of(E value, bool back) {
  const std::size_t step = back ? enum_size<E> - 1 : 1;
  return static_cast<E>((static_cast<std::size_t>(value) + step) % enum_size<E>);
}

constexpr std::size_t most_typed = 80;

}  // namespace

void Ui::move(std::ptrdiff_t by, std::size_t rows) {
  if (!explanation.empty()) {
    explanation_first = static_cast<std::size_t>(
        std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(explanation_first) + by));
    return;
  }
  const auto last = static_cast<std::ptrdiff_t>(rows) - 1;
  selected = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(selected) + by,
                                                                 0, std::max<std::ptrdiff_t>(0, last)));
}

Wish Ui::on_typing(int key) {
  if (key == key_escape) {
    if (typing == Typing::filter) filter.clear();
    typing = Typing::nothing;
  } else if (key == key_enter) {
    const bool asks = typing == Typing::decision && !typed.empty();
    typing = Typing::nothing;
    if (asks) return Wish::explain;
  } else if (key == key_back) {
    if (!typed.empty()) typed.pop_back();
  } else if (key >= ' ' && key < 127 && typed.size() < most_typed) {
    typed += static_cast<char>(key);
  }
  if (typing == Typing::filter) filter = typed, selected = 0;
  return Wish::none;
}

Wish Ui::on_key(int key, const std::vector<EngineName>& shown, std::size_t rows, std::size_t page) {
  if (typing != Typing::nothing) return on_typing(key);
  const auto by_page = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, page));
  switch (key) {
    case 'q': return Wish::quit;
    case 'h':
    case '?': help = !help; break;
    case ' ': paused = !paused; break;
    case '\t':
      tab = next_of(tab, false);
      detail = {}, explanation.clear(), selected = first = 0;
      break;
    case '>':
    case 's': sort = next_of(sort, false); break;
    case '<':
    case 'S': sort = next_of(sort, true); break;
    case 'r': reverse = !reverse; break;
    case 'c': by_cluster = !by_cluster; break;
    case '/': typing = Typing::filter, typed = filter; break;
    case 'e': typing = Typing::decision, typed.clear(); break;
    case 'k':
    case key_up: move(-1, rows); break;
    case 'j':
    case key_down: move(1, rows); break;
    case key_page_up: move(-by_page, rows); break;
    case key_page_down: move(by_page, rows); break;
    case key_home: move(-static_cast<std::ptrdiff_t>(rows), rows); break;
    case key_end: move(static_cast<std::ptrdiff_t>(rows), rows); break;
    case key_enter:
      if (tab == Tab::engines && detail.empty() && selected < shown.size()) detail = shown[selected];
      break;
    case key_escape:
      if (help)
        help = false;
      else if (!explanation.empty())
        explanation.clear(), explanation_first = 0;
      else
        detail = {};
      break;
    default: break;
  }
  return Wish::none;
}

}  // namespace signalbox::top
