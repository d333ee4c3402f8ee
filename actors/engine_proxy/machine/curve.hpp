// The service curve of one engine, learnt while it works.
//
//   readings --step_between--> sample --> slowness, at once
//                                    \--> window of a second --> observations by batch --fit--> curve
//
// The two answer different questions. The slowness is one factor on all times and follows a step within a few readings. The
// curve is how the time depends on the load; it is fitted every few seconds to the last observations at every batch size
// seen, and where none was made the declared profile holds, with a covariance that says so. Where the curve is uncertain a
// deviation is no sign of a step: it may as well be the curve's.
//
// When the speed steps, a new regime begins. Its observations count relative to its own slowness, so that the shape learnt
// before stays. In the first regime the scale belongs to the curve, since a profile may be declared wrong.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "actors/engine_proxy/machine/slowness.hpp"
#include "optimizer/fit/fit.hpp"

namespace signalbox::engine_proxy {

/// Why a pair of readings taught nothing, or that it did.
enum class Lesson : std::uint8_t {
  learnt,
  idle,          ///< no batch, or too few tokens
  stale,         ///< the readings lie too far apart: nobody knows what was in between
  contradictory  ///< the numbers do not fit each other
};

/// The curve in force.
struct Curve {
  optimizer::StepTime step;  ///< its slowness is 1
  std::uint64_t number = 0;  ///< counts up with each curve; 0: as declared
  std::optional<optimizer::CurveFit> fit;
  std::uint64_t observations = 0;          ///< behind the fit
  double least_batch = 0, most_batch = 0;  ///< that the fit has seen
};

class CurveLearner {
 public:
  static constexpr Duration furthest_apart = 2s;
  static constexpr Duration window = 1s, longest_window = 10s;
  static constexpr double window_tokens = 64;
  static constexpr std::size_t kept_per_batch = 6;
  static constexpr double batch_ratio = 1.25;                  ///< between one kept batch size and the next
  static constexpr std::uint64_t first_fit = 3, next_fit = 8;  ///< new observations before a fit

  explicit CurveLearner(const optimizer::StepTime& declared);

  /// Two successive good readings of one life.
  Lesson observe(const Reading& before, const Reading& after, Duration between, double declared_kv_tokens,
                 Instant now);
  /// Another life of the engine: nothing learnt holds.
  void restart();

  const Curve& curve() const { return curve_; }
  double slowness() const { return slowness_.value(); }
  std::uint64_t samples() const { return slowness_.samples(); }
  std::uint64_t refused() const { return refused_; }  ///< stale or contradictory pairs

 private:
  struct Observed {
    optimizer::Observation what;  ///< as measured
    double prefill_noise;  ///< standard deviation of its prompt tokens per step: by prompts that it cut
    std::uint64_t regime;
    Instant at;
  };
  struct Window {
    double seconds = 0, tokens = 0, steps = 0, time_s = 0, running = 0, context = 0, prefill = 0;
  };
  /// Of prompts, decayed: the tokens that had to be computed of each.
  struct Prompts {
    double number = 0, squares = 0;
  };
  /// Too few tokens came since `first`: an engine swamped with prompts. What it computed of them is paid for by the tokens that
  /// come next, so that the span goes on.
  struct Thin {
    Reading first;
    Duration span{};
  };
  Lesson observe_span(const Reading& before, const Reading& after, Duration between,
                      double declared_kv_tokens, Instant now);
  void see_prompts(const StepSample& sample);
  double cut_tokens() const;
  double doubt_of_prefill(double steps, double step_s) const;
  bool long_enough() const;
  void add(const StepSample& sample, Duration between, Instant now);
  bool remembers(double running, Instant now) const;
  void begin_regime(Instant now);
  void fit();
  double calibrate_prefill(std::vector<optimizer::Observation>& data) const;
  std::vector<optimizer::Observation> at_own_scale();
  bool worth_adopting(const optimizer::CurveFit& fit, const std::vector<optimizer::Observation>& data) const;
  double variance_at(const optimizer::Load& load) const;

  optimizer::Prior prior_;
  optimizer::StepTime declared_;
  Curve curve_;
  Slowness slowness_;
  Window window_;
  Prompts prompts_;
  std::optional<Thin> thin_;
  std::deque<optimizer::Load> latest_;            ///< of the last windows of this regime
  std::map<int, std::deque<Observed>> observed_;  ///< by the batch's logarithm, the oldest first
  std::map<std::uint64_t, double> scale_;         ///< slowness by regime; 1 where there is none
  std::uint64_t regime_ = 0, new_observations_ = 0, refused_ = 0;
};

}  // namespace signalbox::engine_proxy
