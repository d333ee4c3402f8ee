// Where the repository's files are. In a source file of its own, so that no other object depends on the folder of the
// checkout and a compiler cache serves every clone.
#pragma once

#include <filesystem>
#include <string_view>

namespace signalbox::tests {

/// The path of a file of the repository, named from its root.
std::filesystem::path source_path(std::string_view relative);

}  // namespace signalbox::tests
