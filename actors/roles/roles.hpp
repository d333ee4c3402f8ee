// The registry: a new actor type is its folder, and its line in roles.cpp.
#pragma once

#include <span>

#include "actors/kit/process.hpp"

namespace signalbox::actors {

std::span<const kit::RoleEntry> roles();

}  // namespace signalbox::actors
