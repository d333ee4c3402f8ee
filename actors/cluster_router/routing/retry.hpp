// Whether a failed attempt may be tried elsewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cluster-config/policy/compiled.hpp"
#include "messages/base/described.hpp"
#include "messages/base/time.hpp"
#include "messages/schema/traffic.hpp"

namespace signalbox::routing {

/// Retries over first attempts, with a burst: at any time retries <= ratio * offered + burst.
class RetryBudget {
 public:
  void configure(double ratio, double burst) {
    if (!started_) left_ = burst;
    started_ = true;
    ratio_ = ratio;
    burst_ = burst;
    left_ = std::min(left_, burst);
  }
  void first_attempt() { left_ = std::min(burst_, left_ + ratio_); }
  bool available() const { return left_ >= 1.0; }
  void take() { left_ -= 1.0; }

 private:
  double ratio_ = 0;
  double burst_ = 0;
  double left_ = 0;
  bool started_ = false;
};

/// Why a failed attempt is retried or not.
enum class RetryAnswer : std::uint8_t { yes, not_listed, stateful, attempts_used, too_late, no_budget };

/// One attempt that failed before the first byte.
struct FailedAttempt {
  schema::AttemptEnd end = schema::AttemptEnd::open;
  std::uint16_t status = 0;    ///< of the answer's head; 0: none came
  std::uint32_t attempts = 1;  ///< made so far
  bool stateful = false;
  Duration elapsed{};  ///< since the request's arrival
  Duration allowed{};  ///< the request's whole time
};

/// Answers without touching the budget: who retries takes from it.
RetryAnswer may_retry(const policy::Retry& rules, const FailedAttempt& failed, const RetryBudget& budget);

/// What an answer's status says of the attempt.
schema::AttemptEnd end_of_status(std::uint16_t status);
/// How the policy calls this end where it counts against the engine; nothing where it does not.
std::optional<policy::FailureKind> failure_of(schema::AttemptEnd end, std::uint16_t status);

}  // namespace signalbox::routing

template <>
struct signalbox::EnumTable<signalbox::routing::RetryAnswer> {
  static constexpr std::array rows{
      EnumRow{"yes", "it may be tried on another engine"},
      EnumRow{"not_listed", "the policy does not retry this kind of failure"},
      EnumRow{"stateful", "its state lives on that engine"},
      EnumRow{"attempts_used", "it has had all attempts that the policy allows"},
      EnumRow{"too_late", "too much of its time has passed"},
      EnumRow{"no_budget", "the budget for retries is used up"},
  };
};
