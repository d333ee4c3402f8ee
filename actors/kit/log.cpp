#include "actors/kit/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

namespace signalbox::kit {

std::shared_ptr<spdlog::logger> make_logger(const std::string& level) {
  auto logger =
      std::make_shared<spdlog::logger>("signalbox", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  return logger;
}

void write_line(spdlog::logger& logger, const LogLine& line) {
  const auto level = line.severity == schema::Severity::critical  ? spdlog::level::err
                     : line.severity == schema::Severity::warning ? spdlog::level::warn
                                                                  : spdlog::level::info;
  logger.log(level, "{} {}", line.event, line.text);
}

}  // namespace signalbox::kit
