// What stands at the other end of a command's output.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace signalbox::cli {

struct Terminal {
  std::size_t columns = 0;  ///< 0: as many as it takes
  std::size_t lines = 0;    ///< likewise
};

/// The terminal on stdout. Where $COLUMNS is set it says the width, with or without a terminal.
Terminal terminal();

/// Writes a text at once. What cannot be written (a full disk, a reader that has left) is lost: for words whose writer has
/// better things to do than to fail of them.
void put(std::FILE* out, std::string_view text);

}  // namespace signalbox::cli
