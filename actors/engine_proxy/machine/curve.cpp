#include "actors/engine_proxy/machine/curve.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace signalbox::engine_proxy {

namespace {

using optimizer::Load;
using optimizer::Observation;

/// Of what a profile declares: right within a factor of two, mostly. What a token of context costs is known least.
constexpr optimizer::ParameterArray declared_deviation{0.5, 0.5, 1.0, 0.5};
/// Where none is declared: a mid-sized model on a recent accelerator, known to an order of magnitude.
constexpr optimizer::StepTime undeclared{0.015, 3e-4, 1e-8, 5e-5, 1.0};
constexpr optimizer::ParameterArray undeclared_deviation{1.5, 1.5, 1.5, 1.5};
/// Of the time per token in one window, at the least.
constexpr optimizer::FitOptions fit_options{.tpot_noise = 0.03};
/// A fit on few observations is surer of itself than it should be: its variance counts this much in the search for steps.
constexpr double doubt_of_fit = 4;
/// So many observations within so many batch sizes of the present one are a memory of how fast the engine was there.
constexpr std::size_t memory_needed = 3;
constexpr int batches_near = 2;
/// Windows that tell where the load is now.
constexpr std::size_t latest_windows = 3;
/// A window is long enough when prompts that it cuts may make it wrong by this share.
constexpr double doubt_of_window = 0.04;
/// A window that is not so good even at its longest, where a few sequences decode beside long prompts, tells nothing that a
/// declared profile does not know better.
constexpr double most_doubt = 2 * doubt_of_window;
/// Of what is known of the lengths of prompts, by each prompt more.
constexpr double prompts_kept = 0.98;
/// Readings that came this long before a step was believed may be of either side.
constexpr Duration doubtful = 2500ms;
/// The batch that an engine states and the one that its tokens imply may differ by this factor and number.
constexpr double batch_slack = 2.5, batch_slack_sequences = 3;
/// A curve is replaced where its predictions move by more than this.
constexpr double least_change = 0.02;
/// The curve is asked beyond the loads seen as well: a plan may go there.
constexpr double beyond = 2;

optimizer::Prior prior_of(const optimizer::StepTime& declared) {
  if (declared.a_s > 0)
    return {{declared.a_s, declared.b_s, declared.k_s, declared.c_s, 1.0}, declared_deviation};
  return {undeclared, undeclared_deviation};
}

/// One step as the fit takes it: per sequence, and per output token of it.
Load load_of(double running, double context_tokens, double prefill_tokens) {
  return {running, {prefill_tokens / running, 1.0, context_tokens / running}};
}

int batch_of(double running) {
  return static_cast<int>(std::floor(std::log(running) / std::log(CurveLearner::batch_ratio)));
}

/// In a span of `seconds`, N sequences get N * seconds / step_s tokens.
bool contradicts(const StepSample& sample, const Reading& before, const Reading& after, double seconds) {
  if (!std::isfinite(sample.step_s) || !std::isfinite(sample.running) || sample.running <= 0) return true;
  if (after.kv_usage && (*after.kv_usage < 0 || *after.kv_usage > 1)) return true;
  const double implied = sample.tokens * sample.step_s / seconds;
  const double most = std::max(*before.running, *after.running),
               least = std::min(*before.running, *after.running);
  return implied > batch_slack * most + batch_slack_sequences ||
         implied * batch_slack + batch_slack_sequences < least;
}

/// Where windows are further off than stated (long prompts, computed in some and paid for by others), each tells less, and what was
/// declared more: taken at the stated noise, the terms that the data cannot tell apart would fit the errors.
Result<optimizer::CurveFit> fit_by_seen_noise(const std::vector<Observation>& data,
                                              const optimizer::Prior& prior, double doubt) {
  optimizer::FitOptions options = fit_options;
  options.tpot_noise = std::hypot(options.tpot_noise, doubt);
  auto fitted = optimizer::fit_curve(data, prior, options);
  if (!fitted || fitted->noise <= options.tpot_noise) return fitted;
  options.tpot_noise = fitted->noise;
  return optimizer::fit_curve(data, prior, options);
}

}  // namespace

CurveLearner::CurveLearner(const optimizer::StepTime& declared)
    : prior_(prior_of(declared)), declared_(declared) {
  curve_.step = declared;
  curve_.step.slowness = 1;
}

void CurveLearner::restart() {
  const std::uint64_t number = curve_.number, refused = refused_;
  *this = CurveLearner(declared_);
  curve_.number = number == 0 ? 0 : number + 1;
  refused_ = refused;
}

/// Of the logarithm of the time that the curve predicts. A profile declared as such is taken at its word until it is
/// tested: its error is a slowness like any other.
double CurveLearner::variance_at(const Load& load) const {
  return curve_.fit ? doubt_of_fit * optimizer::predicted_variance(*curve_.fit, load) : 0;
}

Lesson CurveLearner::observe(const Reading& before, const Reading& after, Duration between,
                             double declared_kv_tokens, Instant now) {
  if (after.running && *after.running == 0) {
    slowness_.idle(between);
    window_ = {};
    thin_.reset();
    return Lesson::idle;
  }
  if (between > furthest_apart) {
    window_ = {};
    thin_.reset();
    ++refused_;
    return Lesson::stale;
  }
  const auto thin = std::exchange(thin_, std::nullopt);
  if (!thin || thin->span + between > furthest_apart)
    return observe_span(before, after, between, declared_kv_tokens, now);
  return observe_span(thin->first, after, thin->span + between, declared_kv_tokens, now);
}

Lesson CurveLearner::observe_span(const Reading& before, const Reading& after, Duration between,
                                  double declared_kv_tokens, Instant now) {
  const auto sample = step_between(before, after, between, declared_kv_tokens);
  if (!sample) {
    if (before.running.value_or(0) >= 1 && after.running.value_or(0) >= 1) thin_ = {before, between};
    return Lesson::idle;
  }
  if (contradicts(*sample, before, after, to_seconds(between))) {
    window_ = {};
    ++refused_;
    return Lesson::contradictory;
  }
  see_prompts(*sample);
  const Load load = load_of(sample->running, sample->context_tokens, sample->prefill_tokens);
  const double predicted = predicted_step_s(*sample, curve_.step);
  const double cut = doubt_of_prefill(sample->steps, predicted);
  if (slowness_.observe(*sample, predicted, variance_at(load) + cut * cut, between) &&
      remembers(sample->running, now))
    begin_regime(now);
  else
    add(*sample, between, now);
  return Lesson::learnt;
}

/// Whether the engine's speed in this regime is known at such a batch. If not, it is the curve that is wrong there, and the
/// next fit will tell; until then the slowness alone makes up for it.
bool CurveLearner::remembers(double running, Instant now) const {
  const int batch = batch_of(running);
  std::size_t known = 0;
  for (auto near = observed_.lower_bound(batch - batches_near);
       near != observed_.end() && near->first <= batch + batches_near; ++near)
    known += static_cast<std::size_t>(
        std::count_if(near->second.begin(), near->second.end(),
                      [&](const Observed& o) { return o.regime == regime_ && now - o.at >= doubtful; }));
  return known >= memory_needed;
}

void CurveLearner::begin_regime(Instant now) {
  window_ = {};
  latest_.clear();
  for (auto& [batch, kept] : observed_)
    std::erase_if(kept, [&](const Observed& o) { return o.regime == regime_ && now - o.at < doubtful; });
  if (!curve_.fit) {  // what came before the first fit is of no shape yet: the curve keeps the scale
    observed_.clear();
    new_observations_ = 0;
    return;
  }
  ++regime_;
}

void CurveLearner::see_prompts(const StepSample& sample) {
  if (sample.prompts <= 0) return;
  const double keep = std::pow(prompts_kept, sample.prompts);
  prompts_.number = keep * prompts_.number + sample.prompts;
  prompts_.squares =
      keep * prompts_.squares + sample.computed_tokens * sample.computed_tokens / sample.prompts;
}

/// Engines count a prompt when all of it is computed, and a long one takes many steps. A span that cuts one at either end
/// has computed up to a whole one more or less than was counted in it: with cuts anywhere, a variance of a twelfth of its
/// square at each end. In tokens.
double CurveLearner::cut_tokens() const {
  return prompts_.number > 0 ? std::sqrt(prompts_.squares / prompts_.number / 6) : 0;
}

/// The same as a share of the time of so many steps.
double CurveLearner::doubt_of_prefill(double steps, double step_s) const {
  if (steps <= 0 || step_s <= 0) return 0;
  const double c = curve_.step.a_s > 0 ? curve_.step.c_s : prior_.step.c_s;
  return c * cut_tokens() / (steps * step_s);
}

bool CurveLearner::long_enough() const {
  if (window_.seconds < to_seconds(window) || window_.tokens < window_tokens) return false;
  return window_.seconds >= to_seconds(longest_window) ||
         doubt_of_prefill(window_.steps, window_.time_s / window_.tokens) <= doubt_of_window;
}

/// Means over a second or, where prompts are long, over several: one reading's prompts are often paid for by the next one's tokens.
void CurveLearner::add(const StepSample& sample, Duration between, Instant now) {
  window_.seconds += to_seconds(between);
  window_.tokens += sample.tokens;
  window_.steps += sample.steps;
  window_.time_s += sample.tokens * sample.step_s;
  window_.running += sample.tokens * sample.running;
  window_.context += sample.tokens * sample.context_tokens;
  window_.prefill += sample.tokens * sample.prefill_tokens;
  if (!long_enough()) return;
  const double n = window_.running / window_.tokens;
  const Observation what{load_of(n, window_.context / window_.tokens, window_.prefill / window_.tokens),
                         window_.time_s / window_.tokens,
                         {}};
  const double prefill_noise = window_.steps > 0 ? cut_tokens() / window_.steps : 0;
  const double doubt = doubt_of_prefill(window_.steps, what.tpot_s);
  window_ = {};
  if (declared_.a_s > 0 && doubt > most_doubt) return;
  latest_.push_back(what.load);
  if (latest_.size() > latest_windows) latest_.pop_front();
  auto& kept = observed_[batch_of(n)];
  kept.push_back({what, prefill_noise, regime_, now});
  if (kept.size() > kept_per_batch) kept.pop_front();
  ++new_observations_;
  if (new_observations_ >= (curve_.fit ? next_fit : first_fit)) fit();
}

void CurveLearner::fit() {
  new_observations_ = 0;
  if (regime_ > 0) scale_[regime_] = slowness_.value();
  std::vector<Observation> data = at_own_scale();
  const double cuts = calibrate_prefill(data);
  const auto fitted = fit_by_seen_noise(data, prior_, cuts);
  if (!fitted || !fitted->converged || !worth_adopting(*fitted, data)) return;
  double change = 0;  // of what is predicted of the present load, which the slowness speaks of
  for (const Load& load : latest_)
    if (curve_.step.a_s > 0)
      change += std::log(optimizer::tpot_s(fitted->step, load) / optimizer::tpot_s(curve_.step, load));
  slowness_.rebase(std::exp(change / static_cast<double>(latest_.size())));
  const auto [least, most] = std::minmax_element(data.begin(), data.end(), [](const auto& a, const auto& b) {
    return a.load.sequences < b.load.sequences;
  });
  curve_ = {fitted->step, curve_.number + 1,     *fitted,
            data.size(),  least->load.sequences, most->load.sequences};
}

/// Errors in what the time is explained by make its coefficient too small: on an engine that computes prompts all the time
/// the counts vary by the cuts alone, prompts would seem to cost nothing and every step to be slow. So each count is
/// replaced by what is to be expected of the truth: the line over the batch sizes, and as much of the way to the count as
/// the counts' spread exceeds that of the cuts (regression calibration: Carroll et al., Measurement Error in Nonlinear
/// Models, 2006, chapter 4). Returns how far cuts put the times off, as a share: root of the mean square. Where that is
/// less than the times' own noise it is a part of it, and nothing is done.
double CurveLearner::calibrate_prefill(std::vector<Observation>& data) const {
  std::vector<double> noise;
  for (const auto& [batch, kept] : observed_)
    for (const Observed& o : kept) noise.push_back(o.prefill_noise);
  const auto number = static_cast<double>(data.size());
  const auto batch = [](const Observation& o) { return o.load.sequences; };
  const auto prefill = [](const Observation& o) {
    return o.load.sequences * o.load.shape.uncached_prompt_tokens;
  };
  double n = 0, f = 0;
  for (const Observation& o : data) n += batch(o) / number, f += prefill(o) / number;
  double nn = 0, nf = 0;
  for (const Observation& o : data)
    nn += (batch(o) - n) * (batch(o) - n), nf += (batch(o) - n) * (prefill(o) - f);
  const double slope = nn > 0 ? nf / nn : 0;
  const auto line = [&](const Observation& o) { return std::max(0.0, f + slope * (batch(o) - n)); };
  const double c = curve_.step.a_s > 0 ? curve_.step.c_s : prior_.step.c_s;
  double spread = 0, cuts = 0, share = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    spread += (prefill(data[i]) - line(data[i])) * (prefill(data[i]) - line(data[i])) / number;
    cuts += noise[i] * noise[i] / number;
    const double off = c * noise[i] / data[i].tpot_s;
    share += off * off / number;
  }
  if (std::sqrt(share) <= fit_options.tpot_noise) return 0;
  const double real = std::max(0.0, spread - cuts);
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (noise[i] <= 0) continue;
    const double trust = real / (real + noise[i] * noise[i]);
    const double expected = line(data[i]) + trust * (prefill(data[i]) - line(data[i]));
    data[i].load.shape.uncached_prompt_tokens = expected / batch(data[i]);
  }
  return std::sqrt(share);
}

/// All kept observations as an engine of slowness 1 would have made them. Forgets regimes of which none is left.
std::vector<Observation> CurveLearner::at_own_scale() {
  std::vector<Observation> out;
  std::map<std::uint64_t, double> used;
  for (const auto& [batch, kept] : observed_)
    for (const Observed& o : kept) {
      out.push_back(o.what);
      const auto scale = scale_.find(o.regime);
      if (scale == scale_.end()) continue;
      out.back().tpot_s /= scale->second;
      used.insert(*scale);
    }
  scale_ = std::move(used);
  return out;
}

bool CurveLearner::worth_adopting(const optimizer::CurveFit& fit,
                                  const std::vector<Observation>& data) const {
  if (!curve_.fit) return true;
  const auto moves = [&](const Load& load, double limit) {
    return std::abs(std::log(optimizer::tpot_s(fit.step, load) / optimizer::tpot_s(curve_.step, load))) >
           limit;
  };
  Load far = data.back().load;
  far.sequences *= beyond;
  const double least_sure = std::sqrt(variance_at(far)),
               sure = std::sqrt(optimizer::predicted_variance(fit, far));
  return sure < 0.7 * least_sure || moves(far, 2 * least_change) ||
         std::any_of(data.begin(), data.end(), [&](const auto& o) { return moves(o.load, least_change); });
}

}  // namespace signalbox::engine_proxy
