// The files of the page, as they were built in.
#pragma once

#include <span>
#include <string_view>

namespace signalbox::console {

struct PageFile {
  std::string_view path;  ///< "/app.js"
  std::string_view content_type;
  std::string_view bytes;
};

/// Empty where the chart library was not there when this was built: then there is no page.
std::span<const PageFile> page_files();

}  // namespace signalbox::console
