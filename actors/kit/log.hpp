// The process's log: one line per event on stderr, "time level event text", with events named for good.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

#include "actors/kit/shape/machine.hpp"

namespace signalbox::kit {

/// `level` is one of debug, info, warning, error; thread-safe.
std::shared_ptr<spdlog::logger> make_logger(const std::string& level);
void write_line(spdlog::logger& logger, const LogLine& line);

}  // namespace signalbox::kit
