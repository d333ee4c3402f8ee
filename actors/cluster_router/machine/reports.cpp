#include "actors/cluster_router/machine/reports.hpp"

#include <algorithm>

namespace signalbox::cluster_router {

namespace {

void add_counts(schema::OutcomeRow& to, const schema::OutcomeRow& from) {
  to.attempts += from.attempts;
  to.succeeded += from.succeeded;
  to.connect_errors += from.connect_errors;
  to.resets += from.resets;
  to.timeouts += from.timeouts;
  to.server_errors += from.server_errors;
  to.overloaded += from.overloaded;
  to.broken_streams += from.broken_streams;
  to.cancelled += from.cancelled;
  to.first_bytes += from.first_bytes;
  to.first_byte_sum_s += from.first_byte_sum_s;
  to.latency_sum_s += from.latency_sum_s;
  to.decode_sum_s += from.decode_sum_s;
  to.output_tokens += from.output_tokens;
}

/// What is in flight adds up over loops; times are the slowest loop's word, the penalty the harshest.
void add_gauges(schema::OutcomeRow& to, const schema::OutcomeRow& from) {
  to.inflight += from.inflight;
  to.inflight_prefill_tokens += from.inflight_prefill_tokens;
  to.inflight_kv_tokens += from.inflight_kv_tokens;
  to.connect_s = std::max(to.connect_s, from.connect_s);
  to.first_byte_s = std::max(to.first_byte_s, from.first_byte_s);
  to.penalty = std::min(to.penalty, from.penalty);
}

void add_demand(schema::DemandRow& to, const schema::DemandRow& from) {
  to.offered += from.offered;
  to.admitted += from.admitted;
  to.shed += from.shed;
  to.prompt_tokens += from.prompt_tokens;
  to.cached_tokens += from.cached_tokens;
  to.output_tokens += from.output_tokens;
  to.finished += from.finished;
}

}  // namespace

bool Reports::is_foreign(const routing::Batch& batch) const {
  return !empty() && (batch.policy != policy_ || batch.table != table_);
}

void Reports::add(const routing::Batch& batch) {
  if (policy_ != batch.policy || table_ != batch.table)
    for (auto& [number, loop] : loops_) loop.gauges.clear();  // their rows index another table
  policy_ = batch.policy;
  table_ = batch.table;
  Loop& loop = loops_[batch.loop];
  if (batch.number > loop.last + 1) dropped_ += batch.number - loop.last - 1;
  loop.last = batch.number;
  for (const auto& row : batch.demand) {
    auto& to = demand_[row.request_class];
    to.request_class = row.request_class;
    add_demand(to, row);
  }
  for (const auto& row : batch.groups) {
    auto& to = groups_[{row.request_class, row.group}];
    const std::uint64_t requests = to.requests + row.requests;
    to = row;
    to.requests = requests;
  }
  for (const auto& row : batch.outcomes) {
    auto& to = outcomes_[row.engine];
    to.engine = row.engine;
    add_counts(to, row);
    loop.gauges[row.engine] = row;
  }
  for (const auto& row : batch.served) {
    auto& to = served_[{row.request_class, row.engine}];
    to.request_class = row.request_class;
    to.engine = row.engine;
    to.requests += row.requests;
    to.latency_sum_s += row.latency_sum_s;
    to.first_byte_sum_s += row.first_byte_sum_s;
  }
}

Reports::Pair Reports::take(Duration period) {
  Pair out;
  ++number_;
  out.demand.cluster = out.outcome.cluster = cluster_;
  out.demand.policy = out.outcome.policy = policy_;
  out.outcome.table = table_;
  out.demand.period = out.outcome.period = period;
  out.outcome.number = number_;
  out.outcome.queue_dropped = std::exchange(dropped_, 0);
  for (const auto& [number, loop] : loops_)
    for (const auto& [engine, gauges] : loop.gauges) {
      auto& to = outcomes_[engine];
      to.engine = engine;
      add_gauges(to, gauges);
    }
  for (auto& [c, row] : demand_) out.demand.rows.push_back(row);
  for (auto& [key, row] : groups_)
    if (out.demand.groups.size() < most_groups) out.demand.groups.push_back(row);
  for (auto& [e, row] : outcomes_) out.outcome.engines.push_back(row);
  for (auto& [key, row] : served_) out.outcome.served.push_back(row);
  Sealed sealed{number_, {}};
  for (const auto& [index, loop] : loops_) {
    sealed.batches.resize(std::max<std::size_t>(sealed.batches.size(), index + 1));
    sealed.batches[index] = loop.last;
  }
  sealed_.push_back(std::move(sealed));
  if (sealed_.size() > sealed_kept) sealed_.pop_front();
  demand_.clear();
  groups_.clear();
  outcomes_.clear();
  served_.clear();
  return out;
}

std::vector<std::uint64_t> Reports::batches_of(std::uint64_t report) const {
  const auto after =
      std::find_if(sealed_.begin(), sealed_.end(), [&](const Sealed& s) { return s.report > report; });
  return after == sealed_.begin() ? std::vector<std::uint64_t>{} : std::prev(after)->batches;
}

}  // namespace signalbox::cluster_router
