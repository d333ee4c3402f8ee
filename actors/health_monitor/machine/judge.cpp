#include "actors/health_monitor/machine/judge.hpp"

#include <fmt/format.h>

#include <cmath>

#include "actors/kit/fleet/verdicts.hpp"

namespace signalbox::health_monitor {

using schema::ScrapeState;
using Why = schema::Evidence;

namespace {

/// Failed readings in a row after which an engine is suspect, and gone.
constexpr std::uint64_t suspect_after = 2;
constexpr std::uint64_t gone_after = 3;
/// Silence of this improbability is noticed, though not before half of the policy's soft limit.
constexpr double late_phi = 3;
/// Failed probes in a row after which the monitor believes its own eye.
constexpr std::uint32_t blind_after = 3, refused_after = 2, barren_after = 2;
/// Failures that routers must have seen lately to accuse an engine.
constexpr double accusing = 3;
/// Share of failures from which an engine is degraded, and suspect.
constexpr double degraded_share = 0.2;
constexpr double suspect_share = 0.7;
/// Measured over predicted time per token from which an engine is called slow. The plan already knows its slowness, so
/// that its capacity is not lowered a second time.
constexpr double slow_from = 3;

class Judge {
 public:
  Judge(const Evidence& e, const policy::Stale& stale) : e_(e), stale_(stale) {}

  Finding run() {
    if (e_.signal == nullptr) {
      found_ = {HealthState::starting, Why::never_seen, "its proxy has not spoken of it yet", 0, false};
    } else {
      found_.detail = fmt::format("signals {:.1f} s old", to_seconds(e_.silence));
    }
    silence();
    readings();
    probes();
    progress();
    outcomes();
    slowness();
    if (e_.drain_ordered) found_ = {HealthState::draining, Why::ordered, "an operator ordered it", 0, false};
    found_.suspicion = e_.suspicion;
    return found_;
  }

 private:
  void find(HealthState state, Why why, std::string detail) {
    if (kit::badness(state) <= kit::badness(found_.state)) return;
    found_.state = state, found_.evidence = why, found_.detail = std::move(detail);
  }

  void silence() {
    const bool late = e_.suspicion >= late_phi && e_.silence > stale_.signal_soft / 2;
    if (!late && e_.silence <= stale_.signal_hard) return;
    const double seconds = to_seconds(e_.silence);
    if (e_.silence <= stale_.signal_hard)
      return find(HealthState::degraded, Why::signals_late, fmt::format("no signal for {:.1f} s", seconds));
    if (!e_.proxy_lives && e_.eye.unreachable >= refused_after && !e_.vouched)
      return find(
          HealthState::suspect, Why::engine_unreachable,
          fmt::format("its proxy is silent for {:.0f} s, and the monitor cannot connect to it", seconds));
    if (!e_.proxy_lives)
      return find(
          HealthState::degraded, Why::signals_late,
          fmt::format("its proxy is silent for {:.0f} s: nothing speaks against the engine itself", seconds));
    if (e_.vouched)
      return find(HealthState::degraded, Why::signals_late,
                  fmt::format("no signal for {:.0f} s, but requests to it succeed", seconds));
    find(HealthState::suspect, Why::signals_late, fmt::format("no signal for {:.0f} s", seconds));
  }

  void readings() {
    if (e_.signal == nullptr || e_.signal->scrape == ScrapeState::ok ||
        e_.signal->scrape == ScrapeState::malformed)
      return;
    const std::uint64_t failed = e_.signal->failed_readings;
    const bool refused = e_.signal->scrape == ScrapeState::refused;
    const auto why = refused ? Why::engine_errors : Why::engine_unreachable;
    const std::string detail =
        fmt::format("{} readings in a row failed: {}", failed, sentence_of(e_.signal->scrape));
    const bool others = e_.unreached > 0 || e_.eye.unreachable >= refused_after;
    found_.confirmed = !e_.vouched && others && e_.signal->scrape == ScrapeState::unreachable;
    if (failed < suspect_after && !found_.confirmed) return;
    if (e_.vouched) return find(HealthState::degraded, why, detail + ", but requests to it succeed");
    if (e_.eye.answers && !refused)
      return find(HealthState::degraded, why, detail + ", but it answers the monitor");
    find(failed >= gone_after ? HealthState::gone : HealthState::suspect, why, detail);
  }

  void probes() {
    if (e_.vouched) return;
    if (e_.eye.barren >= barren_after)
      return find(HealthState::suspect, Why::no_progress,
                  fmt::format("asked {} times for one token, it gave none", e_.eye.barren));
    if (e_.eye.failed >= blind_after)
      find(HealthState::degraded, Why::engine_unreachable,
           fmt::format("{} of the monitor's probes in a row failed", e_.eye.failed));
  }

  void progress() {
    if (e_.stuck <= stale_.signal_hard) return;
    const auto detail =
        fmt::format("it has requests, and no token has moved for {:.0f} s", to_seconds(e_.stuck));
    find(e_.stuck > 3 * stale_.signal_hard ? HealthState::gone : HealthState::suspect, Why::no_progress,
         detail);
  }

  void outcomes() {
    if (e_.failed < accusing) return;
    const double share = e_.failed / (e_.failed + e_.succeeded);
    const auto detail = fmt::format("{:.0f} % of the latest attempts failed", share * 100);
    if (share >= suspect_share)
      find(HealthState::suspect, Why::requests_failing, detail);
    else if (share >= degraded_share)
      find(HealthState::degraded, Why::requests_failing, detail);
  }

  void slowness() {
    if (e_.signal == nullptr || e_.signal->slowness < slow_from) return;
    find(HealthState::degraded, Why::slow,
         fmt::format("{:.1f} times slower than its curve", e_.signal->slowness));
  }

  const Evidence& e_;
  const policy::Stale& stale_;
  Finding found_;
};

}  // namespace

double Outcomes::fade(Instant now) const {
  return at_ == never_yet ? 0 : std::exp(-to_seconds(now - at_) / to_seconds(memory));
}

void Outcomes::hear(const schema::OutcomeRow& row, Instant now) {
  const double fading = fade(now);
  const auto unreached = static_cast<double>(row.connect_errors + row.resets);
  succeeded_ = succeeded_ * fading + static_cast<double>(row.succeeded);
  unreached_ = unreached_ * fading + unreached;
  failed_ = failed_ * fading + unreached +
            static_cast<double>(row.timeouts + row.server_errors + row.broken_streams);
  at_ = now;
  if (row.succeeded + row.first_bytes > 0)
    good_at_ = now;
  else if (unreached + static_cast<double>(row.timeouts + row.server_errors) > 0)
    good_at_ = never_yet;  // what it did before speaks for it no more
  if (row.attempts > 0 || row.inflight > 0) used_at_ = now;
}

Finding judge(const Evidence& evidence, const policy::Stale& stale) { return Judge(evidence, stale).run(); }

}  // namespace signalbox::health_monitor
