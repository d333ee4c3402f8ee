// Which life of its engine a proxy sees.
#pragma once

#include <optional>
#include <string>

#include "actors/engine_proxy/adapters/adapter.hpp"
#include "messages/base/ids.hpp"

namespace signalbox::engine_proxy {

/// The incarnation in force, and what tells the next one apart: the process's start time where the engine gives it, else
/// counters that fell.
class Life {
 public:
  /// `kept` is what text() said before this proxy was started; else the engine's lives are counted from `fresh`.
  Life(const std::string& kept, Incarnation fresh);

  /// True if this reading is of another life than the ones before: then the incarnation is a new one.
  bool observe(const Reading& reading);
  Incarnation incarnation() const { return incarnation_; }
  std::string text() const;

 private:
  bool another(const Reading& reading) const;

  Incarnation incarnation_;
  bool seen_ = false;  ///< any reading, in this process or by what was kept
  std::optional<double> start_time_s_;
  std::optional<double> prompt_tokens_, output_tokens_, requests_;
};

}  // namespace signalbox::engine_proxy
