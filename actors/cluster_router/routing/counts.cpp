#include "actors/cluster_router/routing/counts.hpp"

#include <algorithm>
#include <tuple>

#include "actors/cluster_router/routing/request.hpp"

namespace signalbox::routing {

using schema::AttemptEnd;

namespace {

constexpr double smoothing = 0.1;

void smooth(double& mean, double x) { mean = mean == 0 ? x : mean + smoothing * (x - mean); }

std::uint64_t served_key(ClassIndex c, EngineIndex e) { return std::uint64_t{c.value} << 32 | e.value; }

/// The new row of each old one.
template <class Index>
std::vector<Index> inverse(const std::vector<Index>& from, std::size_t old_size) {
  std::vector<Index> to(old_size);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].valid()) to[from[i].at()] = Index(i);
  return to;
}

}  // namespace

void Counts::remap_classes(const std::vector<ClassIndex>& from) {
  const auto to = inverse(from, demand_.size());
  std::vector<schema::DemandRow> demand(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].valid()) demand[i] = demand_[from[i].at()];
  demand_ = std::move(demand);
  hot_.clear();

  std::unordered_map<std::uint64_t, schema::ServedRow> served;
  for (auto& [key, row] : served_) {
    row.request_class = to[row.request_class.at()];
    if (row.request_class.valid()) served[served_key(row.request_class, row.engine)] = row;
  }
  served_ = std::move(served);
}

void Counts::remap_engines(const std::vector<EngineIndex>& from) {
  const auto to = inverse(from, engines_.size());
  std::vector<PerEngine> engines(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].valid()) engines[i] = engines_[from[i].at()];
  engines_ = std::move(engines);

  std::unordered_map<std::uint64_t, schema::ServedRow> served;
  for (auto& [key, row] : served_) {
    row.engine = to[row.engine.at()];
    if (row.engine.valid()) served[served_key(row.request_class, row.engine)] = row;
  }
  served_ = std::move(served);
  for (schema::SentRow& row : sent_) row.engine = to[row.engine.at()];
  std::erase_if(sent_, [](const schema::SentRow& row) { return !row.engine.valid(); });
}

void Counts::connected(EngineIndex engine, Duration took) {
  smooth(engines_[engine.at()].connect_s, to_seconds(took));
}

void Counts::ended(const EndedAttempt& attempt) {
  PerEngine& engine = engines_[attempt.engine.at()];
  schema::OutcomeRow& row = engine.row;
  ++row.attempts;
  row.output_tokens += attempt.output_tokens;
  if (attempt.first_byte != never_yet) {
    const double took = to_seconds(attempt.first_byte - attempt.began);
    smooth(engine.first_byte_s, took);
    ++row.first_bytes;
    row.first_byte_sum_s += took;
    row.decode_sum_s += to_seconds(attempt.ended - attempt.first_byte);
  }
  switch (attempt.end) {
    case AttemptEnd::succeeded:
      ++row.succeeded;
      row.latency_sum_s += to_seconds(attempt.ended - attempt.began);
      serve(attempt);
      break;
    case AttemptEnd::connect_error:
    case AttemptEnd::tls_failed:
    case AttemptEnd::untrusted: ++row.connect_errors; break;
    case AttemptEnd::reset_before_head: ++row.resets; break;
    case AttemptEnd::first_byte_timeout: ++row.timeouts; break;
    case AttemptEnd::server_error: ++row.server_errors; break;
    case AttemptEnd::overloaded: ++row.overloaded; break;
    case AttemptEnd::broken_stream:
    case AttemptEnd::gap_timeout: ++row.broken_streams; break;
    case AttemptEnd::client_left:
    case AttemptEnd::superseded: ++row.cancelled; break;
    case AttemptEnd::open:
    case AttemptEnd::client_error:   // the request's fault
    case AttemptEnd::total_timeout:  // the request's own limit
      break;
  }
}

void Counts::serve(const EndedAttempt& attempt) {
  if (!attempt.request_class.valid()) return;
  schema::ServedRow& row = served_[served_key(attempt.request_class, attempt.engine)];
  row.request_class = attempt.request_class;
  row.engine = attempt.engine;
  ++row.requests;
  row.latency_sum_s += to_seconds(attempt.ended - attempt.arrived);
  const Instant first = attempt.first_byte == never_yet ? attempt.ended : attempt.first_byte;
  row.first_byte_sum_s += to_seconds(first - attempt.arrived);
}

void Counts::sent(EngineIndex engine, std::span<const std::uint64_t> blocks) {
  const std::size_t room = most_sent_rows_ - std::min(most_sent_rows_, sent_.size());
  const std::size_t kept = std::min(room, blocks.size());
  sent_dropped_ += blocks.size() - kept;
  for (std::size_t i = kept; i > 0; --i) sent_.push_back({engine, blocks[i - 1]});
}

void Counts::drain(const LoadTable& loads, const Penalties& penalties, Instant now, Batch& batch) {
  for (std::size_t c = 0; c < demand_.size(); ++c) {
    demand_[c].request_class = ClassIndex(c);
    const schema::DemandRow& row = demand_[c];
    if (row.offered + row.admitted + row.shed + row.finished > 0) batch.demand.push_back(demand_[c]);
    demand_[c] = {};
  }
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    PerEngine& engine = engines_[e];
    const OwnLoad& own = loads.own(EngineIndex(e));
    schema::OutcomeRow row = std::exchange(engine.row, {});
    row.penalty = penalties.multiplier(EngineIndex(e), now);
    const bool busy = row.attempts > 0 || own.requests > 0 || row.penalty < 1;
    if (!busy && !engine.listed) continue;
    engine.listed = busy;
    row.engine = EngineIndex(e);
    row.inflight = static_cast<double>(own.requests);
    row.inflight_prefill_tokens = static_cast<double>(own.prefill_tokens);
    row.inflight_kv_tokens = static_cast<double>(own.kv_tokens);
    row.connect_s = engine.connect_s;
    row.first_byte_s = engine.first_byte_s;
    batch.outcomes.push_back(row);
  }
  for (const auto& [key, row] : served_) batch.served.push_back(row);
  std::sort(batch.served.begin(), batch.served.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.request_class, a.engine) < std::tuple(b.request_class, b.engine);
  });
  served_.clear();
  batch.groups = hot_.drain(batch.block_bytes / bytes_per_token, now);
  batch.sent = std::exchange(sent_, {});
  batch.sent_dropped = std::exchange(sent_dropped_, 0);
  batch.retries_denied = std::exchange(retries_denied_, 0);
}

}  // namespace signalbox::routing
