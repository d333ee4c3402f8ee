// How a dispatcher meets its actor: takes over views, hands out batches. With a new view rows are renumbered by name, so
// that what is in flight, owed or held against an engine follows it from one table or policy to the next.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "actors/cluster_router/routing/dispatcher_state.hpp"

namespace signalbox::routing {

namespace {

/// So many of the latest plans are kept, and more as long as they take no more than this: a small fleet's of an hour.
constexpr std::size_t kept_contexts = 32;
constexpr std::size_t kept_context_bytes = 8u << 20;
/// The cache index is this deep in units of the engine's KV memory: shallower loses hits, deeper gains nothing.
constexpr double depth_in_kv = 1.5;
/// An engine whose KV memory nobody declared.
constexpr double default_kv_tokens = 100'000;

/// For each new row the old one of the same name, or none.
template <class Index, class Rows>
std::vector<Index> match_names(const Rows* before, const Rows& after) {
  std::unordered_map<std::string_view, Index> old;
  if (before != nullptr)
    for (std::size_t i = 0; i < before->size(); ++i) old.emplace((*before)[i].name.str(), Index(i));
  std::vector<Index> from(after.size());
  for (std::size_t i = 0; i < after.size(); ++i)
    if (const auto found = old.find(after[i].name.str()); found != old.end()) from[i] = found->second;
  return from;
}

template <class... Rows>
std::size_t bytes_of(const std::vector<Rows>&... rows) {
  return (0 + ... + (rows.size() * sizeof(Rows)));
}

std::size_t bytes_of(const PlanContext& context) {
  std::size_t out = sizeof context + bytes_of(context.states);
  for (const ClassTable& table : context.tables->classes)
    out += sizeof table + context.states.size() / 4 + table.engines.size() * (sizeof(EngineIndex) + 2 * 8);
  if (const auto* s = context.snapshot.get())
    out += sizeof *s + bytes_of(s->weights, s->admits, s->allowed, s->prices, s->runners_up, s->covers,
                                s->costs, s->groups, s->limits);
  return out;
}

template <class Index>
std::vector<Index> invert(const std::vector<Index>& from, std::size_t old_size) {
  std::vector<Index> to(old_size);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].valid()) to[from[i].at()] = Index(i);
  return to;
}

}  // namespace

Dispatcher::State::State(DispatcherOptions given)
    : options(std::move(given)),
      shared(options.shared ? options.shared : std::make_shared<SharedState>(1)),
      life(digest_of(fmt::format("{}/{}.{}", options.router, options.incarnation.counter,
                                 options.incarnation.random))
               .fingerprint() &
           ((1ULL << 40) - 1)),
      rng(options.seed),
      cache(options.cache_blocks),
      sessions(*shared),
      counts(options.sent_rows),
      records(options.records),
      filing(options.file_records ? std::make_unique<PlainQueue<FiledRecord>>(options.filed_waiting)
                                  : nullptr),
      publishing(options.published_per_s) {}

Dispatcher::State::~State() {
  for (OpenRequest& request : requests) {
    if (request.rival) loads.release(request.rival->hold, drained_at);
    loads.release(request.hold, drained_at);
  }
}

void Dispatcher::State::adopt(std::shared_ptr<const View> next, Instant now) {
  if (next == nullptr || next == view) return;
  const std::shared_ptr<const View> before = std::exchange(view, std::move(next));
  if (before == nullptr || before->policy->hash != view->policy->hash) follow_policy(before.get());
  if (before == nullptr || before->table->content != view->table->content) follow_table(before.get());
  if (before == nullptr || before->plan != view->plan) keep_context();
  follow_engines(now);
  if (options.loop < view->covered_batches.size()) penalties.covered(view->covered_batches[options.loop]);
  const auto block_tokens = static_cast<std::int64_t>(options.block_bytes / bytes_per_token);
  std::vector<std::int64_t> to_compute(view->engines.size());
  for (const auto& batch : view->sent) {
    if (batch->number <= sent_applied) continue;
    sent_applied = batch->number;
    if (batch->loop == options.loop) continue;  // known since it was sent
    for (const schema::SentRow& row : batch->rows)
      if (row.engine.at() < view->engines.size() && cache.sent_block(row.engine, row.block))
        to_compute[row.engine.at()] += block_tokens;
  }
  for (std::size_t e = 0; e < to_compute.size(); ++e)
    loads.sent_elsewhere(EngineIndex(e), to_compute[e], view->engines[e].c, now);
  if (drained_at == never_yet) drained_at = now;
}

void Dispatcher::State::follow_policy(const View* before) {
  const auto& rows = view->policy->classes;
  const auto* old_rows = before == nullptr ? nullptr : &before->policy->classes;
  const auto from = match_names<ClassIndex>(old_rows, rows);
  gate.remap(from);
  floors.remap(from);
  shares.clear();
  counts.remap_classes(from);
  std::vector<ClassMeans> followed(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (from[i].valid()) followed[i] = means[from[i].at()];
  means = std::move(followed);
  // Each loop earns by its own requests; what is there at once is one burst, whoever needs it.
  budget.configure(view->policy->retry.budget_ratio, view->policy->retry.budget_burst / options.loops);
  penalties.configure(view->policy->penalty);
  if (old_rows == nullptr) return;

  const auto to = invert(from, old_rows->size());
  for (OpenRequest& request : requests)
    if (request.phase != OpenRequest::Phase::closed && request.ask.request_class.valid())
      request.ask.request_class = to[request.ask.request_class.at()];
  for (const Waiting& homeless : room.remap(to)) evicted.push_back(homeless.ticket);
}

void Dispatcher::State::follow_table(const View* before) {
  const auto& rows = view->table->engines;
  const auto* old_rows = before == nullptr ? nullptr : &before->table->engines;
  const auto from = match_names<EngineIndex>(old_rows, rows);
  const std::size_t old_size = old_rows == nullptr ? 0 : old_rows->size();
  bool same_rows = true;
  for (std::size_t i = 0; i < std::max(from.size(), old_size); ++i)
    same_rows &= i >= old_size || (i < from.size() && from[i] == EngineIndex(i));
  std::vector<std::uint32_t> numbers;
  for (const auto& row : rows) numbers.push_back(shared->number_of(row.name.str(), rows.size()));
  std::vector<std::atomic<std::int64_t>*> all;
  if (options.loops > 1)
    for (const std::uint32_t number : numbers) all.push_back(shared->in_flight(number));
  loads.remap(from, all);
  limits.remap(from);
  lateness.remap(from);
  trust.remap(from);
  std::vector<CacheFacts> followed(from.size());
  for (std::size_t e = 0; e < from.size(); ++e)
    if (from[e].valid()) followed[e] = caches[from[e].at()];
  caches = std::move(followed);
  for (std::size_t e = 0; e < from.size(); ++e) loads.set_limit(EngineIndex(e), limits.limit(EngineIndex(e)));
  penalties.remap(from);
  counts.remap_engines(from);
  cache.resize(rows.size(), same_rows);
  const auto to = invert(from, old_size);
  sessions.follow(std::move(numbers));
  const auto moved = [&](EngineIndex& engine) {
    if (engine.valid()) engine = to[engine.at()];
  };
  for (OpenRequest& request : requests) {
    if (request.phase == OpenRequest::Phase::closed) continue;
    moved(request.engine);
    moved(request.ask.home);
    moved(request.ask.pinned);
    for (EngineIndex& engine : request.tried) moved(engine);
    if (request.hold.held()) loads.renumber(request.hold, request.engine);
    if (!request.rival) continue;
    moved(request.rival->engine);
    if (request.rival->hold.held()) loads.renumber(request.rival->hold, request.rival->engine);
  }
}

void Dispatcher::State::follow_engines(Instant) {
  for (std::size_t e = 0; e < view->engines.size(); ++e) {
    const EngineIndex engine(e);
    const EngineFacts& facts = view->engines[e];
    if (facts.described_at != never_yet) loads.reading(engine, facts.described_at);
    if (facts.judged && penalties.incarnation(engine, view->plan->incarnations[e])) forget_life(engine);
    follow_cache(engine);
    limit_depth(engine);
  }
}

/// An engine that says that it emptied its cache is believed at once, whoever sent there. A lower count is another proxy's.
void Dispatcher::State::follow_cache(EngineIndex engine) {
  const CacheFacts now = view->cache_of(engine);
  CacheFacts& before = caches[engine.at()];
  if (now.told && before.told && now.clears > before.clears) {
    cache.forget(engine);
    trust.forget(engine);
  }
  if (now.told) before = now;
}

/// As many blocks as the engine's memory may hold: by what it declares, by what a full cache held by its own events, and by
/// what its answers said.
void Dispatcher::State::limit_depth(EngineIndex engine) {
  const EngineFacts& facts = view->at(engine);
  const double declared = facts.kv_tokens > 0 ? facts.kv_tokens : default_kv_tokens;
  // fmin: what is not known is NaN and limits nothing.
  const double kv = std::fmin(declared, view->cache_of(engine).held_tokens);
  const double blocks = depth_in_kv * kv * bytes_per_token / options.block_bytes * trust.share(engine);
  cache.set_depth(engine, static_cast<std::size_t>(std::clamp(blocks, 1.0, 1e9)));
}

/// The engine was started anew: nothing that was seen of its last life holds.
void Dispatcher::State::forget_life(EngineIndex engine) {
  cache.forget(engine);
  trust.forget(engine);
  lateness.forget(engine);
  limits.forget(engine);
  loads.set_limit(engine, limits.limit(engine));
}

void Dispatcher::State::keep_context() {
  PlanContext context;
  context.number = contexts.empty() ? 1 : contexts.back().number + 1;
  context.names = fingerprint_of(*view->policy, *view->table);
  context.policy = view->policy;
  context.table = view->table;
  context.snapshot = view->snapshot;
  context.tables = view->plan;
  context.as_of = view->as_of;
  for (const EngineFacts& facts : view->engines) context.states.push_back(facts.state);
  context_bytes += bytes_of(context);
  contexts.push_back(std::move(context));
  while (contexts.size() > kept_contexts && context_bytes > kept_context_bytes) {
    context_bytes -= bytes_of(contexts.front());
    contexts.pop_front();
  }
}

const PlanContext* Dispatcher::State::context(std::uint32_t number) const {
  if (contexts.empty() || number < contexts.front().number) return nullptr;
  const std::size_t at = number - contexts.front().number;
  return at < contexts.size() ? &contexts[at] : nullptr;
}

/// The latest plan whose rows had the same names.
const PlanContext* Dispatcher::State::context_of_names(std::uint32_t names) const {
  const auto found =
      std::find_if(contexts.rbegin(), contexts.rend(), [&](const auto& c) { return c.names == names; });
  return found == contexts.rend() ? nullptr : &*found;
}

Batch Dispatcher::State::drain(Instant now) {
  Batch batch;
  batch.loop = options.loop;
  batch.number = next_batch++;
  batch.from = drained_at == never_yet ? now : drained_at;
  batch.until = now;
  batch.block_bytes = options.block_bytes;
  batch.open = static_cast<std::uint32_t>(open);
  batch.waiting = static_cast<std::uint32_t>(room.size());
  if (view != nullptr) {
    batch.policy = view->policy->hash;
    batch.table = view->table->content;
  }
  file_those_open_for_long(now);
  hand_out(batch, now);
  counts.drain(loads, penalties, now, batch);
  penalties.carried_by(batch.number, now);
  drained_at = now;
  return batch;
}

}  // namespace signalbox::routing
