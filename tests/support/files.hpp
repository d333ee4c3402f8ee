// Files of the repository, for tests: examples to read, and golden texts that SIGNALBOX_REWRITE=1 rewrites.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/source_dir.hpp"

namespace signalbox::tests {

/// Whether golden texts are to be rewritten rather than compared.
bool rewriting();

/// The whole file; a test that asks for one that is not there fails at once.
std::string read_file(const std::filesystem::path& path);

/// Makes the folders on the way.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Compares with the golden file, or rewrites it.
void check_golden(const std::filesystem::path& path, const std::string& actual);

}  // namespace signalbox::tests
