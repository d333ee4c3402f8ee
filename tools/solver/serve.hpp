// The solver child's loop: length-prefixed solve requests on standard input, replies on standard output.
#pragma once

namespace signalbox::optimizer {

/// Faults that a test asks for by SIGNALBOX_SOLVER_FAULT; the optimizer must survive each.
enum class InjectedFault { none, crash, hang, nan };

/// Serves until standard input ends. Returns the exit code: 0 at a clean end, 1 if the stream broke.
int serve(InjectedFault fault);

}  // namespace signalbox::optimizer
