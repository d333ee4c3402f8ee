// What stands at the other end of a command's output.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace signalbox::cli {

/// Columns of the terminal on stdout; 0 if it is none.
std::size_t terminal_width();

/// Writes a text at once. What cannot be written (a full disk, a reader that has left) is lost: for words whose writer has
/// better things to do than to fail of them.
void put(std::FILE* out, std::string_view text);

}  // namespace signalbox::cli
