#include "optimizer/model/forecast.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::optimizer {

namespace {

/// A slope of fewer of its own standard deviations is chance; from `sure` on it is taken whole.
constexpr double doubtful_slope = 3.0, sure_slope = 5.0;
/// What one count adds to the line lies no further from what was expected. More is a step, which the level tells.
constexpr double most_deviations = 3.5;
/// Standard deviation of the times that a line must rest on.
constexpr double least_spread_s = 1.0;
/// Step and bounds of the quantile's multiplier.
constexpr double promise_step = 0.05, least_z = 0.5, most_z = 6.0;
/// Both tried on two weeks of a service's rates, ten minutes ahead: docs/measured/forecast.md.
constexpr double newest_day = 0.2, believed_season = 0.7;
constexpr double most_season = 4.0;

/// How far a count lies from what is expected, in standard deviations of a Poisson count (Anscombe's transform), given that
/// the expectation itself rests on counts.
double deviation_of(double count, double expected, double seconds, double exposure) {
  const auto stable = [](double n) { return 2 * std::sqrt(std::max(0.0, n) + 0.375); };
  return (stable(count) - stable(expected)) / std::sqrt(1 + seconds / exposure);
}

/// The count as far as it is believed: a burst from somebody who stood still, or reports that come all at once after a
/// cut, are no rise. `noise`: standard deviations in one of a Poisson count.
double believed(double count, double expected, double seconds, double exposure, double noise) {
  const double most = most_deviations * noise * std::sqrt(1 + seconds / exposure) / 2;
  const double root = std::sqrt(std::max(0.0, expected) + 0.375);
  const auto back = [](double r) { return std::max(0.0, r * r - 0.375); };
  return std::clamp(count, back(std::max(0.0, root - most)), back(root + most));
}

double seconds_of(Instant at) { return to_seconds(at.time_since_epoch()); }

}  // namespace

std::size_t Season::bin_of(double at_s) {
  const double phase = at_s / day_s - std::floor(at_s / day_s);
  return std::min(bins - 1, static_cast<std::size_t>(phase * bins));
}

void Season::observe(double count, double seconds, double at_s) {
  const std::size_t bin = bin_of(at_s - seconds / 2);
  if (bin != open_ && open_ < bins && seconds_ > 0) {
    Bin& closed = bins_[open_];
    const double rate = count_ / seconds_;
    closed.rate_per_s += (closed.days == 0 ? 1.0 : newest_day) * (rate - closed.rate_per_s);
    ++closed.days;
    count_ = seconds_ = 0;
  }
  open_ = bin;
  count_ += count;
  seconds_ += seconds;
}

/// Between the middles of its two nearest bins.
std::optional<double> Season::rate_at(double at_s) const {
  const double width = day_s / bins;
  const Bin& left = bins_[bin_of(at_s - width / 2)];
  const Bin& right = bins_[bin_of(at_s + width / 2)];
  if (left.days < 2 || right.days < 2) return std::nullopt;
  const double place = (at_s - width / 2) / width, part = place - std::floor(place);
  return left.rate_per_s + part * (right.rate_per_s - left.rate_per_s);
}

double Season::ratio(double from_s, double to_s) const {
  const auto from = rate_at(from_s), to = rate_at(to_s);
  if (!from || !to || *from <= 0) return 1.0;
  return std::clamp(std::pow(*to / *from, believed_season), 1 / most_season, most_season);
}

void Forecast::Line::age(double seconds, double keep) {
  // t becomes t - seconds in all sums, then everything counts less.
  s2 += seconds * (seconds * s0 - 2 * s1), q2 += seconds * (seconds * q0 - 2 * q1);
  s1 -= seconds * s0, q1 -= seconds * q0, y1 -= seconds * y0;
  for (double* sum : {&s0, &s1, &s2, &y0, &y1}) *sum *= keep;
  for (double* sum : {&q0, &q1, &q2}) *sum *= keep * keep;
}

void Forecast::Line::add(double count, double seconds) {
  const double t = -seconds / 2;
  s0 += seconds, s1 += seconds * t, s2 += seconds * t * t;
  q0 += seconds, q1 += seconds * t, q2 += seconds * t * t;
  y0 += count, y1 += count * t;
}

void Forecast::Line::restart(double rate, double seconds) {
  *this = {};
  s0 = q0 = seconds;
  s1 = q1 = -seconds * seconds / 2;
  s2 = q2 = seconds * seconds * seconds / 3;
  y0 = rate * s0, y1 = rate * s1;
}

Forecast::Trend Forecast::trend() const {
  const double spread = line_.s0 * line_.s2 - line_.s1 * line_.s1;
  if (line_.s0 <= 0 || spread <= least_spread_s * least_spread_s * line_.s0 * line_.s0) return {};
  const double slope = (line_.s0 * line_.y1 - line_.s1 * line_.y0) / spread;
  const double mean = line_.y0 / line_.s0;
  const double squares =
      line_.s0 * line_.s0 * line_.q2 - 2 * line_.s0 * line_.s1 * line_.q1 + line_.s1 * line_.s1 * line_.q0;
  // The rate at the lower end of a steep line is low, and its counts are surer than the mean's.
  const double deviation =
      std::sqrt(std::max(mean, 1e-6) * std::max(squares, 0.0)) / spread * std::max(1.0, z_);
  const double share =
      std::clamp((std::abs(slope) / deviation - doubtful_slope) / (sure_slope - doubtful_slope), 0.0, 1.0);
  return {slope, mean - slope * line_.s1 / line_.s0, share};
}

double Forecast::rate_per_s(Duration ahead) const {
  const double tau = to_seconds(memory), horizon = to_seconds(ahead);
  const Trend t = trend();
  const double damped = tau * (1 - std::exp(-std::max(0.0, horizon) / tau)) + std::min(0.0, horizon);
  const double rate = (1 - t.share) * level_.value() + t.share * (t.now + t.slope * damped);
  const double now_s = at_ == never_yet ? 0 : seconds_of(at_);
  return std::max(0.0, rate) * season_.ratio(now_s, now_s + horizon);
}

double Forecast::upper_per_s() const {
  const double rate = rate_per_s(window / 2);
  return rate + z_ * std::sqrt(rate / to_seconds(window));
}

double Forecast::sure_per_s() const {
  const double level = level_.value(), seconds = level_.exposure();
  return seconds > 0 ? std::max(0.0, level - z_ * std::sqrt(level / seconds)) : 0;
}

bool Forecast::observe(double count, double seconds, Instant at) {
  if (seconds <= 0) return false;
  keep_promise(count, seconds);
  const double keep = std::exp(-seconds / to_seconds(memory));
  const double exposure = level_.exposure();
  const Duration back = from_seconds(-seconds / 2);
  // The middle of this observation lies half its length after the last one's end.
  const double expected = exposure > 0 ? rate_per_s(Duration{} - back) * seconds : 0;
  const double deviation = exposure > 0 ? deviation_of(count, expected, seconds, exposure) : 0;
  const bool stepped = level_.observe({count, seconds}, deviation, keep);
  if (stepped) {
    line_.restart(level_.value(), level_.exposure());
  } else {
    line_.age(seconds, keep);
    line_.add(exposure > 0 ? believed(count, expected, seconds, exposure, std::max(1.0, z_)) : count,
              seconds);
  }
  season_.observe(count, seconds, seconds_of(at));
  at_ = at;
  if (!promise_) promise_ = Promise{upper_per_s()};
  return stepped;
}

void Forecast::restart(double rate_per_s, double seconds) {
  level_.restart(rate_per_s, seconds);
  line_.restart(rate_per_s, seconds);
}

void Forecast::keep_promise(double count, double seconds) {
  if (!promise_) return;
  promise_->count += count;
  promise_->seconds += seconds;
  if (promise_->seconds < to_seconds(window)) return;
  const bool broken = promise_->count > promise_->upper_per_s * promise_->seconds;
  if (promise_->count > 0 || promise_->upper_per_s > 0)
    z_ = std::clamp(z_ + promise_step * ((broken ? 1.0 : 0.0) - (1 - quantile)), least_z, most_z);
  promise_.reset();
}

}  // namespace signalbox::optimizer
