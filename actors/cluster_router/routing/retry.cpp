#include "actors/cluster_router/routing/retry.hpp"

namespace signalbox::routing {

using policy::FailureKind;
using schema::AttemptEnd;

AttemptEnd end_of_status(std::uint16_t status) {
  if (status == 429 || status == 503) return AttemptEnd::overloaded;
  if (status >= 500) return AttemptEnd::server_error;
  if (status >= 400) return AttemptEnd::client_error;
  return AttemptEnd::succeeded;
}

std::optional<FailureKind> failure_of(AttemptEnd end, std::uint16_t status) {
  switch (end) {
    case AttemptEnd::connect_error:
    case AttemptEnd::tls_failed:
    case AttemptEnd::untrusted: return FailureKind::connect;
    case AttemptEnd::reset_before_head: return FailureKind::reset;
    case AttemptEnd::first_byte_timeout: return FailureKind::timeout;
    case AttemptEnd::server_error: return FailureKind::status;
    case AttemptEnd::overloaded:  // 429 is a wish to be left alone, not a failure
      return status >= 500 ? std::optional(FailureKind::status) : std::nullopt;
    case AttemptEnd::broken_stream:
    case AttemptEnd::gap_timeout: return FailureKind::broken;
    case AttemptEnd::open:
    case AttemptEnd::succeeded:
    case AttemptEnd::client_error:
    case AttemptEnd::total_timeout:
    case AttemptEnd::client_left:
    case AttemptEnd::superseded: return std::nullopt;
  }
  return std::nullopt;
}

RetryAnswer may_retry(const policy::Retry& rules, const FailedAttempt& failed, const RetryBudget& budget) {
  const auto kind = failure_of(failed.end, failed.status);
  const bool listed = failed.status != 0 ? rules.retries_status(failed.status) : kind && rules.retries(*kind);
  if (!listed) return RetryAnswer::not_listed;
  if (failed.stateful) return RetryAnswer::stateful;
  if (failed.attempts >= rules.attempts) return RetryAnswer::attempts_used;
  if (to_seconds(failed.elapsed) > rules.deadline_share * to_seconds(failed.allowed))
    return RetryAnswer::too_late;
  return budget.available() ? RetryAnswer::yes : RetryAnswer::no_budget;
}

}  // namespace signalbox::routing
