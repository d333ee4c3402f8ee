// What is looked at once plans are in force: limits that they could not hold, and what came of them.
#include <fmt/format.h>

#include <set>

#include "actors/global_optimizer/machine/machine.hpp"

namespace signalbox::global_optimizer {

void Machine::say_limits_not_held(const std::vector<schema::RoutingSnapshot>& plan, const Facts& facts,
                                  Instant now, Effects& effects) {
  const schema::LimitRow* first = nullptr;
  std::set<std::pair<ClassIndex, schema::PolicyLimit>> all;
  for (const auto& snapshot : plan)
    for (const schema::LimitRow& row : snapshot.limits)
      if (!row.held) {
        all.emplace(row.request_class, row.limit);
        if (!first) first = &row;
      }
  if (!first) return alerts_.clear(kit::AlertName::limit_not_held, effects);
  std::string what =
      fmt::format("{} of class {}", name_of(first->limit), facts.policy->at(first->request_class).name);
  if (all.size() > 1) what += fmt::format(" and {} more", all.size() - 1);
  alerts_.raise(kit::AlertName::limit_not_held,
                fmt::format("the engines that may serve do not suffice for {}", what), options_.id.str(), now,
                effects);
}

/// Only a leader's plans are in force.
void Machine::calibrate(Instant now, Effects& effects) {
  if (!election_ || !election_->leads()) return calibration_.clear();
  auto window = calibration_.close(now);
  if (!window) return;
  last_calibration_ = *window;
  if (calibration_.off())
    alerts_.raise(
        kit::AlertName::plan_off,
        fmt::format("requests took {:.2f} times as long as plans expected, {} windows in a row; engines are "
                    "loaded up to {:.0f} % of the policy's ceiling",
                    window->ratio, window->windows_off, 100 * window->headroom),
        options_.id.str(), now, effects);
  else
    alerts_.clear(kit::AlertName::plan_off, effects);
  effects.say(*std::move(window));
}

}  // namespace signalbox::global_optimizer
