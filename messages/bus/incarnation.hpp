// The persisted boot counter of a process.
#pragma once

#include <string>

#include "messages/base/ids.hpp"
#include "messages/base/result.hpp"

namespace signalbox::bus {

struct Life {
  Incarnation incarnation;
  Status kept;  ///< why the counter is not durable
};

/// Begins a new life of process `id`: reads <dir>/<id>.incarnation, raises the counter, writes it back
/// (atomic, fsync) before it returns. A lost file starts at the wall clock's seconds, which outrank any
/// number of counted boots; the random part is fresh. A counter that could not be written may serve two lives: receivers
/// then tell them apart by the random part, and believe the one that they heard of last.
Result<Life> next_incarnation(const std::string& dir, const ProcessName& id);

}  // namespace signalbox::bus
