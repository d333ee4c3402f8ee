#include "tests/support/source_dir.hpp"

namespace signalbox::tests {

std::string source_path(std::string_view relative) {
  return std::string(SIGNALBOX_SOURCE_DIR "/").append(relative);
}

}  // namespace signalbox::tests
