#include "actors/global_optimizer/machine/calibration.hpp"

#include <algorithm>

namespace signalbox::global_optimizer {

namespace {

/// Engine seconds per second that the plan's flows ask for at the demand expected.
std::vector<double> expected_loads(const Facts& facts, const optimizer::Problem& problem,
                                   const optimizer::Plan& plan) {
  std::vector<double> out(problem.engines.size(), 0.0);
  for (std::size_t s = 0; s < problem.sources.size(); ++s) {
    const optimizer::Source& source = problem.sources[s];
    const double share = source.demand_per_s > 0 ? facts.expected[s].rate_per_s / source.demand_per_s : 0;
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i)
      out[problem.pairs[i].engine.at()] += share * plan.flow_per_s[i] * problem.pairs[i].work_s;
  }
  return out;
}

double mean(double sum, double count) { return count > 0 ? sum / count : 0; }

}  // namespace

void CalibrationBook::clear() {
  expected_.clear(), sums_.clear();
  load_now_.clear(), load_sum_.clear(), served_work_.clear();
  plans_ = 0;
  opened_ = never_yet;
}

void CalibrationBook::expect(const Facts& facts, const optimizer::Problem& problem,
                             const optimizer::Plan& plan) {
  if (policy_ != facts.policy->hash || table_ != facts.table->content) clear();
  policy_ = facts.policy->hash, table_ = facts.table->content;
  expected_.clear();
  load_now_ = expected_loads(facts, problem, plan);
  load_sum_.resize(load_now_.size(), 0.0), served_work_.resize(load_now_.size(), 0.0);
  for (std::size_t e = 0; e < load_now_.size(); ++e) load_sum_[e] += load_now_[e];
  ++plans_;
  for (const optimizer::Route& route : facts.fleet.routes) {
    const optimizer::TrafficState& traffic = facts.fleet.traffic[route.source.at()];
    const optimizer::EngineState& engine = facts.fleet.engines[route.engine.at()];
    if (engine.availability <= 0) continue;
    const auto latency = optimizer::expected_latency(engine.step, traffic.shape, load_now_[route.engine.at()],
                                                     engine.availability);
    const double first = route.network_s + latency.ttft_s;
    const double tokens = std::max(0.0, traffic.shape.output_tokens - 1);
    expected_[{facts.table->clusters[traffic.cluster.at()].name, traffic.service_class, route.engine}] = {
        {first, first + tokens * latency.tpot_s}, optimizer::work_s(engine.step, traffic.shape)};
  }
}

void CalibrationBook::hear(const schema::OutcomeReport& report) {
  if (report.policy != policy_ || report.table != table_) return;
  for (const schema::ServedRow& row : report.served) {
    const auto expected = expected_.find({report.cluster, row.request_class, row.engine});
    if (expected == expected_.end() || row.requests == 0) continue;
    const auto n = static_cast<double>(row.requests);
    Sums& sums = sums_[{row.request_class, row.engine}];
    sums.requests += n;
    sums.expected.first_byte_s += n * expected->second.times.first_byte_s;
    sums.expected.latency_s += n * expected->second.times.latency_s;
    sums.came.first_byte_s += row.first_byte_sum_s;
    sums.came.latency_s += row.latency_sum_s;
    served_work_[row.engine.at()] += n * expected->second.work_s;
  }
}

std::optional<schema::Calibration> CalibrationBook::close(Instant now) {
  if (plans_ == 0) return std::nullopt;
  if (opened_ == never_yet) {  // what came before is of an unknown time
    opened_ = now;
    sums_.clear();
    std::fill(served_work_.begin(), served_work_.end(), 0.0);
  }
  if (now - opened_ < window) return std::nullopt;
  schema::Calibration out;
  out.policy = policy_, out.table = table_;
  out.window = now - opened_;
  Sums all;
  for (const auto& [key, sums] : sums_) {
    const double n = sums.requests;
    out.rows.push_back({key.first, key.second, static_cast<std::uint64_t>(n),
                        mean(sums.expected.first_byte_s, n), mean(sums.came.first_byte_s, n),
                        mean(sums.expected.latency_s, n), mean(sums.came.latency_s, n)});
    all.requests += n;
    all.expected.latency_s += sums.expected.latency_s, all.came.latency_s += sums.came.latency_s;
  }
  for (std::size_t e = 0; e < load_sum_.size(); ++e)
    out.loads.push_back({EngineIndex(e), load_sum_[e] / static_cast<double>(plans_),
                         served_work_[e] / to_seconds(out.window)});
  out.ratio = all.expected.latency_s > 0 ? all.came.latency_s / all.expected.latency_s : 1;
  judge(out.ratio, all.requests);
  out.windows_off = windows_off_;
  out.headroom = headroom();
  sums_.clear();
  load_sum_ = load_now_;
  plans_ = 1;
  std::fill(served_work_.begin(), served_work_.end(), 0.0);
  opened_ = now;
  return out;
}

void CalibrationBook::refuses(bool somebody) {
  yielded_ = somebody ? std::min(1.0, yielded_ + yield_step) : std::max(0.0, yielded_ - retake_step);
}

void CalibrationBook::judge(double ratio, double requests) {
  if (requests < least_requests) return;
  windows_off_ = ratio > off_from ? windows_off_ + 1 : 0;
  headroom_ = off()               ? std::max(least_headroom, headroom_ - headroom_step)
              : windows_off_ == 0 ? std::min(1.0, headroom_ + headroom_step)
                                  : headroom_;
}

}  // namespace signalbox::global_optimizer
