// A dispatcher's answers to "why".
#include <fmt/format.h>

#include <algorithm>

#include "actors/cluster_router/routing/dispatcher_state.hpp"
#include "actors/cluster_router/routing/past_decision.hpp"

namespace signalbox::routing {

std::string rule_text(policy::Rule rule, std::string_view class_name, int line) {
  return fmt::format("{}, line {}: {}", class_name, line, sentence_of(rule));
}

namespace {

void fill_names(schema::DecisionRecord& record, ClassIndex request_class, const PlanContext& context) {
  const policy::CompiledPolicy& policy = *context.policy;
  record.request_class = request_class;
  record.class_name = policy.at(request_class).name.str();
  record.model = policy.at(policy.at(request_class).model).name;
  record.policy = policy.hash;
  record.table = context.table->content;
}

void fill_context(schema::DecisionRecord& record, ClassIndex request_class, const PlanContext& context,
                  Instant arrived) {
  fill_names(record, request_class, context);
  if (context.snapshot == nullptr) return;
  record.snapshot = context.snapshot->version;
  record.snapshot_age = std::max(Duration::zero(), arrived - context.as_of);
}

std::string rule_of(policy::Rule rule, const policy::CompiledPolicy* policy, ClassIndex request_class) {
  if (rule != policy::Rule::matched || policy == nullptr || request_class.at() >= policy->classes.size())
    return std::string(sentence_of(rule));
  return rule_text(rule, policy->at(request_class).name.str(), policy->at(request_class).line);
}

schema::AttemptRow attempt_row(const AttemptCore& attempt) {
  const auto since = [](std::uint32_t us) { return std::chrono::microseconds(us); };
  EngineIndex engine;
  engine.value = attempt.engine;
  return {engine,
          attempt.end,
          attempt.status,
          since(attempt.began_us),
          since(attempt.first_byte_us),
          since(attempt.ended_us)};
}

}  // namespace

void Dispatcher::State::publish_inputs(const OpenRequest& request, const Ask& ask, std::uint64_t seed,
                                       Instant now) {
  const std::size_t rows = view->at(ask.request_class).engines.size();
  if (rows > most_input_rows || !publishing.inputs.take(cost_of_inputs(rows), now)) return;
  schema::DecisionInputs read = inputs_of(surroundings(), ask, request.tried, now, seed, decision);
  read.cluster = options.cluster;
  read.decision = to_string(DecisionId{life, count_of(request.sequence)});
  read.attempt = static_cast<std::uint16_t>(request.attempts);
  publishing.read.push_back(std::move(read));
}

void Dispatcher::State::publish_end(std::uint64_t sequence, Instant now) {
  if (publishing.records.take(1, now)) publishing.ended.push_back(sequence);
}

void Dispatcher::State::file_end(const OpenRequest& request) {
  if (!filing) return;
  if (const RecordCore* core = record_of(request))
    return file(*core, costs_of(records.detail(request.sequence)));
  if (request.lasting) file(request.lasting->core, request.lasting->costs);
}

/// Should this process be killed, what it was doing is in the file; and from now on the ring may give their places away.
void Dispatcher::State::file_those_open_for_long(Instant now) {
  constexpr Duration long_time = 500ms;
  if (!filing) return;
  for (OpenRequest& request : requests) {
    if (request.phase == OpenRequest::Phase::closed || request.lasting || now - request.arrived < long_time)
      continue;
    const RecordCore* core = record_of(request);
    if (core == nullptr) continue;  // the ring is shorter than what comes in that time
    request.lasting =
        std::make_unique<LongRecord>(LongRecord{*core, costs_of(records.detail(request.sequence))});
    file(request.lasting->core, request.lasting->costs);
  }
}

/// The records are made here, a few times a second, and not on a request's way.
void Dispatcher::State::hand_out(Batch& batch, Instant now) {
  for (const std::uint64_t sequence : publishing.ended)
    if (auto record = explain_past({life, count_of(sequence)}, now))
      batch.records.push_back(*std::move(record));
  publishing.ended.clear();
  batch.inputs = std::exchange(publishing.read, {});
}

const RecordCore* Dispatcher::State::kept(const DecisionId& id) {
  if (id.life != life || id.count % options.loops != options.loop) return nullptr;
  const std::uint64_t sequence = id.count / options.loops;
  return sequence < next_sequence ? records.find(sequence, id.count) : nullptr;
}

std::optional<schema::DecisionRecord> Dispatcher::State::explain_past(const DecisionId& id, Instant) {
  const RecordCore* core = kept(id);
  if (core == nullptr) return std::nullopt;

  schema::DecisionRecord record;
  record.cluster = options.cluster;
  record.decision = to_string(id);
  record.arrived = Duration(core->arrived_ns);
  record.refused = core->refused;
  record.status = core->status;
  record.prompt_tokens = static_cast<double>(core->prompt_tokens);
  record.output_tokens = static_cast<double>(core->output_tokens);
  record.seed = core->seed;
  record.degraded = core->degraded;
  record.continued = core->continued;
  record.took = std::chrono::microseconds(core->took_us);
  record.snapshot.term.counter = core->term;
  record.snapshot.sequence = core->sequence;

  const PlanContext* plan = context(core->plan);
  const PlanContext* named = plan != nullptr ? plan : context_of_names(core->names);
  const bool classed = core->request_class != UINT16_MAX;
  const ClassIndex request_class = classed ? ClassIndex(core->request_class) : ClassIndex{};
  record.rule = rule_of(core->rule, named == nullptr ? nullptr : named->policy.get(), request_class);
  if (!classed) return record;
  record.request_class = request_class;
  if (plan != nullptr)
    fill_context(record, request_class, *plan, instant_at(record.arrived));
  else if (named != nullptr)
    fill_names(record, request_class, *named);
  for (std::size_t i = 0; i < std::min<std::size_t>(core->attempts, core->kept.size()); ++i)
    record.attempts.push_back(attempt_row(core->kept[i]));
  if (!record.attempts.empty()) {
    record.engine = engine_of(record.attempts);
    if (named != nullptr && record.engine.at() < named->table->engines.size())
      record.engine_name = named->table->engines[record.engine.at()].name;
  }
  record.candidates = explain_recorded(*core, records.detail(id.count / options.loops), plan);
  return record;
}

schema::DecisionRecord Dispatcher::State::explain_next(const RequestFacts& facts, Instant now) const {
  schema::DecisionRecord record;
  record.cluster = options.cluster;
  record.arrived = now.time_since_epoch();
  record.refused = schema::RefuseReason::no_snapshot;
  record.status = 503;
  if (view == nullptr) return record;

  const policy::Classified classified = view->policy->classify(attributes_of(facts));
  record.rule = rule_of(classified.rule, view->policy.get(), classified.index);
  record.status = classified.status;
  record.refused = classified.rule == policy::Rule::otherwise ? schema::RefuseReason::policy_reject
                                                              : schema::RefuseReason::unknown_model;
  if (!classified.admitted()) return record;

  fill_context(record, classified.index, contexts.back(), now);
  Ask ask = ask_of(facts, classified);
  ask.blocks = facts.blocks;
  ask.placed = view->plan->groups.find(ask.blocks, ask.block_tokens);
  record.prompt_tokens = static_cast<double>(ask.prompt_tokens);
  record.output_tokens = static_cast<double>(ask.output_tokens);
  record.seed = seed_of(next_sequence, 0);
  record.degraded = !view->plan_in_force(now);
  record.candidates = explain(surroundings(), ask, {}, now, record.seed);
  record.refused = schema::RefuseReason::no_engine;
  record.status = 503;
  const bool chosen =
      !record.candidates.empty() && record.candidates.front().fate == schema::CandidateFate::chosen;
  if (!chosen) return record;
  record.refused = schema::RefuseReason::none;
  record.status = 0;
  record.engine = record.candidates.front().engine;
  record.engine_name = view->table->engines[record.engine.at()].name;
  return record;
}

}  // namespace signalbox::routing
