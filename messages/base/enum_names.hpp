// The names of an enum's values, as a command line or an error message lists them.
#pragma once

#include <string>
#include <vector>

#include "messages/base/described.hpp"

namespace signalbox {

/// In the enum's order.
template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> out;
  for (const EnumRow& row : EnumTable<E>::rows) out.emplace_back(row.name);
  return out;
}

}  // namespace signalbox
