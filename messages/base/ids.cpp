#include "messages/base/ids.hpp"

#include <algorithm>

namespace signalbox {

namespace {
bool plain_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}
bool wide_char(char c) { return c > ' ' && c <= '~' && c != '"' && c != '\'' && c != '\\'; }
}  // namespace

bool is_plain_name(std::string_view text) {
  return text.find_first_not_of('.') != std::string_view::npos && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), plain_char);
}

bool is_wide_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), wide_char);
}

}  // namespace signalbox
