// A report for people, for programs and for plots.
#pragma once

#include <span>
#include <string>

#include "tools/simulate/world/report.hpp"

namespace signalbox::simulate {

std::string as_text(const Report& report);
/// How the weights answered each happening over all seeds. Precondition: not empty, all of one scenario.
std::string as_text(std::span<const Report> reports);
std::string as_json(const Report& report);
/// One row a sample: t_s, then for each engine planned, served, running, waiting, kv_usage.
std::string as_csv(const Report& report);

}  // namespace signalbox::simulate
