// Counts what operator new hands out in the whole test program.
#pragma once

#include <cstddef>

namespace signalbox::routing::test {

std::size_t allocations();

}  // namespace signalbox::routing::test
