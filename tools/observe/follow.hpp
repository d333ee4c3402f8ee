// One request from its arrival to its end, across processes.
#pragma once

#include "messages/base/result.hpp"
#include "tools/observe/tap.hpp"

namespace signalbox::observe {

/// Prints the journey of the decision `options.follow`, or, for "next", of the first one that passes the filter: out of the
/// recording, or out of what is said from now on. Errors: not_found if it does not come by.
Status follow(const TapOptions& options, const Selection& selection);

}  // namespace signalbox::observe
