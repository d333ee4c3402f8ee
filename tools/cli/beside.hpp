// Programs that lie beside this one: commands that link what this binary must not.
#pragma once

#include <string>
#include <vector>

#include "messages/base/result.hpp"

namespace signalbox::cli {

/// Replaces this process by `program` from this binary's folder. `called` is what it is called in its own help and errors.
/// Returns only if that failed.
Status become(const std::string& program, const std::string& called,
              const std::vector<std::string>& arguments);

}  // namespace signalbox::cli
