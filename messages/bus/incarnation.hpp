// The persisted boot counter of a process.
#pragma once

#include <string>

#include "messages/base/ids.hpp"
#include "messages/base/result.hpp"

namespace signalbox::bus {

/// Begins a new life of process `id`: reads <dir>/<id>.incarnation, raises the counter, writes it back
/// (atomic, fsync) before it returns. A lost file starts at the wall clock's seconds, which outrank any
/// number of counted boots; the random part is fresh. io if the new counter cannot be made durable.
Result<Incarnation> next_incarnation(const std::string& dir, const ProcessName& id);

}  // namespace signalbox::bus
