// How what plans expected compares with what came: latencies by class and engine, loads by engine.
//
// A plan is made for an upper quantile of the demand; what it expects is reckoned at the demand expected, else every quiet
// minute would look like an error. Requests that ended in a window are compared with the plan that was in force when they
// were reported. When the mean of all is off for three windows, plans load engines less, until it is not.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "actors/global_optimizer/machine/planner.hpp"
#include "messages/schema/calibration.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::global_optimizer {

class CalibrationBook {
 public:
  static constexpr Duration window = 10s;
  /// A window with fewer requests says nothing.
  static constexpr double least_requests = 30;
  /// Measured over expected latency from which a window is off.
  static constexpr double off_from = 1.2;
  /// Windows in a row after which plans load engines less, and an alert stands.
  static constexpr std::uint64_t off_windows = 3;
  static constexpr double least_headroom = 0.8, headroom_step = 0.05;
  /// Headroom is for latency: plans that refuse somebody get it back in four periods, those that do not give it up in fifty.
  static constexpr double yield_step = 0.25, retake_step = 0.02;

  /// This plan is in force from now on.
  void expect(const Facts& facts, const optimizer::Problem& problem, const optimizer::Plan& plan);
  /// Reports under another policy or table than the plan's say nothing.
  void hear(const schema::OutcomeReport& report);
  /// The window's comparison, once it is over; the next one begins.
  std::optional<schema::Calibration> close(Instant now);
  /// Forgets what was expected and heard, not the headroom: the rows have changed.
  void clear();

  /// Whether the plan that is in force from now on refuses somebody.
  void refuses(bool somebody);

  /// Share of the policy's ceiling that plans may use.
  double headroom() const { return headroom_ + yielded_ * (1 - headroom_); }
  bool off() const { return windows_off_ >= off_windows; }

 private:
  struct Times {
    double first_byte_s = 0, latency_s = 0;
  };
  /// Of one request.
  struct Expectation {
    Times times;
    double work_s = 0;  ///< of its engine's time
  };
  struct Sums {
    double requests = 0;
    Times expected, came;
  };
  using Key = std::tuple<ClusterName, ClassIndex, EngineIndex>;
  void judge(double ratio, double requests);

  Digest policy_, table_;
  std::map<Key, Expectation> expected_;
  std::vector<double> load_now_;  ///< expected, by EngineIndex
  std::vector<double> load_sum_,
      served_work_;          ///< of the window: expected load by plan, and engine seconds served
  std::uint64_t plans_ = 0;  ///< in the window
  std::map<std::pair<ClassIndex, EngineIndex>, Sums> sums_;
  Instant opened_ = never_yet;
  double headroom_ = 1;
  double yielded_ = 0;  ///< share of what the headroom takes away that is given back
  std::uint64_t windows_off_ = 0;
};

}  // namespace signalbox::global_optimizer
