#include "tools/simulate/world/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cluster-config/policy/compile.hpp"

namespace signalbox::simulate {

Quantiles quantiles(std::vector<double>& values) {
  Quantiles q{.count = values.size()};
  if (values.empty()) return q;
  std::sort(values.begin(), values.end());
  const auto rank = [&](double p) {  // nearest rank
    const auto at = static_cast<std::size_t>(std::ceil(p * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(at, 1) - 1];
  };
  q.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  q.p50 = rank(0.5);
  q.p99 = rank(0.99);
  return q;
}

std::size_t PhaseLoad::refusals() const {
  return std::accumulate(refused.begin(), refused.end(), std::size_t{0});
}
std::size_t PhaseLoad::failures() const {
  return std::accumulate(failed.begin(), failed.end(), std::size_t{0});
}

std::string describe(const Happening& h) {
  switch (h.kind) {
    case HappeningKind::slow: return fmt::format("engine {} takes {:g} times as long", h.engine, h.value);
    case HappeningKind::freeze:
      return fmt::format("engine {} {}", h.engine, h.value != 0 ? "freezes" : "thaws");
    case HappeningKind::down:
      return fmt::format("engine {} {}", h.engine, h.value != 0 ? "dies" : "is started");
    case HappeningKind::demand:
      return fmt::format("demand{} is {:g} times as high", h.load.empty() ? "" : " of " + h.load, h.value);
    case HappeningKind::network:
      return fmt::format("round trip from {} to {} becomes {:g} ms", h.from, h.to, h.value * 1e3);
    case HappeningKind::tell_network:
      return fmt::format("the optimizers are told of {:g} ms from {} to {}", h.value * 1e3, h.from, h.to);
    case HappeningKind::kill:
      return fmt::format("process {} {}", h.process, h.value != 0 ? "is killed" : "is started");
    case HappeningKind::pause:
      return fmt::format("process {} {}", h.process, h.value != 0 ? "stands still" : "goes on");
    case HappeningKind::cut:
      return fmt::format("what {} says to {} {}", h.process, h.peer.empty() ? "all" : h.peer.str(),
                         h.value != 0 ? "is lost" : "passes again");
    case HappeningKind::loss: return fmt::format("{:g} % of messages are lost", 100 * h.value);
    case HappeningKind::repeat: return fmt::format("{:g} % of messages come twice", 100 * h.value);
    case HappeningKind::overtake: return fmt::format("{:g} % of messages are overtaken", 100 * h.value);
    case HappeningKind::disk_full:
      return fmt::format("the disk of {} {}", h.process, h.value != 0 ? "is full" : "has room");
    case HappeningKind::solver: {
      constexpr std::array doings{"solves", "hangs", "fails", "answers nonsense"};
      return fmt::format("the solver of {} {}", h.process, doings[static_cast<std::size_t>(h.value) % 4]);
    }
  }
  return {};
}

Demand sum_of_offered(std::span<const SampleRow> samples) {
  Demand sum;
  for (const SampleRow& row : samples)
    for (const auto& [source, requests] : row.offered) sum[source] += requests;
  return sum;
}

std::vector<std::vector<Sample>> planned_shares(std::span<const SampleRow> samples, const Demand& demand) {
  double total = 0;
  for (const auto& [source, requests] : demand) total += requests;
  std::vector<std::vector<Sample>> shares(samples.empty() ? 0 : samples.front().engines.size());
  for (const SampleRow& row : samples)
    for (std::size_t e = 0; e < shares.size(); ++e) {
      Sample& share = shares[e].emplace_back(Sample{row.at, 0});
      for (const PlannedRow& planned : row.planned)
        if (const auto source = demand.find({planned.cluster, planned.request_class}); source != demand.end())
          share.value += planned.weights[e] * source->second / total;
    }
  return shares;
}

std::vector<std::vector<Sample>> shares_around(std::span<const SampleRow> samples, const Phase& before,
                                               const Phase& phase) {
  const auto between = [&](Instant from, Instant until) {
    const auto earlier = [](const SampleRow& row, Instant t) { return row.at < t; };
    const auto first = std::lower_bound(samples.begin(), samples.end(), from, earlier);
    return std::span(first, std::lower_bound(first, samples.end(), until, earlier));
  };
  return planned_shares(between(before.from + (before.until - before.from) / 2, phase.until),
                        sum_of_offered(between(phase.from, phase.until)));
}

PhaseAnswer answer_of(std::span<const std::vector<Sample>> shares, Instant step) {
  PhaseAnswer out;
  for (std::size_t e = 0; e < shares.size(); ++e)
    out.engines.push_back({e, answer_to_step(shares[e], step, settle_band)});
  const auto progress = progress_of(shares, step, least_step);
  if (!progress.empty()) out.together = answer_to_step(progress, step, progress_band);
  return out;
}

namespace {

std::vector<std::optional<Demand::key_type>> sources_of(const Scenario& scenario) {
  std::vector<std::optional<Demand::key_type>> sources(scenario.loads.size());
  const auto policy = policy::compile_text(scenario.policy, "policy");
  for (std::size_t l = 0; policy && l < sources.size(); ++l) {
    const Load& load = scenario.loads[l];
    policy::RequestAttributes request;
    request.tenant = load.tenant;
    request.model = load.model;
    request.asked = load.asked;
    if (const auto found = policy->classify(request); found.admitted())
      sources[l] = {load.cluster, found.index};
  }
  return sources;
}

}  // namespace

Recorder::Recorder(const Scenario& scenario)
    : scenario_(scenario), sent_(scenario.config.engines.size()), sources_(sources_of(scenario)) {
  phase_starts_.push_back(instant_at(scenario.warmup));
  for (const Happening& h : scenario.happenings)
    if (instant_at(h.at) > phase_starts_.back()) phase_starts_.push_back(instant_at(h.at));
  phases_.assign(phase_starts_.size(), std::vector<Collected>(scenario.loads.size()));
}

void Recorder::arrived(std::size_t load) {
  if (sources_[load]) offered_[*sources_[load]] += 1;
}

void Recorder::sample(SampleRow row) {
  row.offered = std::exchange(offered_, {});
  samples_.push_back(std::move(row));
}

std::size_t Recorder::phase_of(Instant at) const {
  const auto after = std::upper_bound(phase_starts_.begin(), phase_starts_.end(), at);
  return static_cast<std::size_t>(after - phase_starts_.begin()) - 1;
}

void Recorder::record(const Outcome& outcome) {
  if (outcome.engine.valid()) sent_[outcome.engine.at()] += 1;
  if (outcome.arrived < phase_starts_.front()) return;
  Collected& to = phases_[phase_of(outcome.arrived)][outcome.load];
  ++to.counts.offered;
  if (outcome.refused != schema::RefuseReason::none) {
    ++to.counts.refused[static_cast<std::size_t>(outcome.refused)];
  } else if (!outcome.served()) {
    ++to.counts.failed[static_cast<std::size_t>(outcome.end)];
  } else {
    ++to.counts.served;
    to.ttft_s.push_back(to_seconds(outcome.first_byte - outcome.arrived));
    to.e2e_s.push_back(to_seconds(outcome.ended - outcome.arrived));
  }
}

std::vector<double> Recorder::take_sent_shares() {
  std::vector<double> shares(sent_.size());
  shares.swap(sent_);
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = total > 0 ? share / total : 0;
  return shares;
}

std::vector<Phase> Recorder::phases() const {
  std::vector<Phase> out;
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    Phase phase;
    phase.from = phase_starts_[p];
    phase.until = p + 1 < phases_.size() ? phase_starts_[p + 1] : instant_at(scenario_.duration);
    for (const Happening& h : scenario_.happenings)
      if (p > 0 && instant_at(h.at) == phase.from)
        phase.opens_with += (phase.opens_with.empty() ? "" : "; ") + describe(h);
    for (Collected collected : phases_[p]) {
      collected.counts.ttft_s = quantiles(collected.ttft_s);
      collected.counts.e2e_s = quantiles(collected.e2e_s);
      phase.loads.push_back(collected.counts);
    }
    out.push_back(std::move(phase));
  }
  return out;
}

Report Recorder::report() const {
  Report report;
  report.scenario = scenario_.name;
  report.seed = scenario_.seed;
  report.duration = scenario_.duration;
  for (const config::Engine& engine : scenario_.config.engines) report.engines.push_back(engine.name.str());
  for (const Load& load : scenario_.loads) report.loads.push_back(load.name);
  report.samples = samples_;
  const auto shares = planned_shares(samples_, sum_of_offered(samples_));
  for (std::size_t e = 0; e < shares.size(); ++e)
    for (std::size_t s = 0; s < samples_.size(); ++s)
      report.samples[s].engines[e].planned = shares[e][s].value;
  report.phases = phases();
  for (std::size_t p = 1; p < report.phases.size(); ++p)
    report.answers.push_back(
        answer_of(shares_around(samples_, report.phases[p - 1], report.phases[p]), report.phases[p].from));
  return report;
}

}  // namespace signalbox::simulate
