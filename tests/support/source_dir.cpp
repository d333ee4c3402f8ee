#include "tests/support/source_dir.hpp"

namespace signalbox::tests {

std::filesystem::path source_path(std::string_view relative) {
  return std::filesystem::path(SIGNALBOX_SOURCE_DIR) / relative;
}

}  // namespace signalbox::tests
