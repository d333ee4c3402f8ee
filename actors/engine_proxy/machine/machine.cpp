#include "actors/engine_proxy/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace signalbox::engine_proxy {

namespace {

constexpr Duration repeat_profile = 60s;
constexpr Duration say_cache_every = 1s, repeat_cache = 20s;
constexpr Duration grace = 1s;  ///< after its timeout a scrape whose answer never came is given up

schema::ScrapeState state_of(const ScrapeResult& result) {
  switch (result.fault) {
    case FetchFault::unreachable:
    case FetchFault::untrusted: return schema::ScrapeState::unreachable;
    case FetchFault::timed_out: return schema::ScrapeState::timed_out;
    case FetchFault::malformed: return schema::ScrapeState::malformed;
    case FetchFault::none: break;
  }
  return result.status == 200 ? schema::ScrapeState::ok : schema::ScrapeState::refused;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out = fmt::format("{}", fmt::join(names, " "));
  return out.size() <= 2048 ? out : out.substr(0, 2048);
}

/// An engine that reports nonsense must not have its whole signal refused: what is out of range is absent.
std::optional<double> sane(std::optional<double> value, double most) {
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

std::optional<double> mean_between(const std::optional<Accumulated>& before,
                                   const std::optional<Accumulated>& after) {
  if (!before || !after || after->count <= before->count) return std::nullopt;
  return (after->sum_s - before->sum_s) / (after->count - before->count);
}

}  // namespace

Machine::Machine(Options options)
    : options_(std::move(options)),
      adapter_(&adapter_of(options_.kind)),
      life_(options_.kept, options_.fresh),
      learner_(options_.curve),
      alerts_(options_.engine.str()) {
  signal_.cluster = options_.cluster;
  signal_.engine = options_.engine;
  signal_.incarnation = life_.incarnation();
}

const kit::RoleInfo& Machine::role_info() {
  static constexpr std::string_view says[] = {"engine_signal", "engine_profile", "cache_digest",
                                              "engine_farewell", "alert"};
  static constexpr kit::RoleInfo info{Role::engine_proxy, "reads engines and says what they know", {}, says};
  return info;
}

void Machine::on(const schema::Delivery&, Instant, Effects&) {}

void Machine::on(const Input& input, Instant now, Effects& effects) {
  if (removed_) return;
  if (const auto* result = std::get_if<ScrapeResult>(&input)) return take(*result, now, effects);
  if (const auto* heard = std::get_if<CacheHeard>(&input)) return take_cache(heard->state, now, effects);
  removed_ = true;
  effects.say(schema::EngineFarewell{options_.cluster, options_.engine, life_.incarnation(),
                                     std::get<Removed>(input).reason.substr(0, 256)});
}

void Machine::take(const ScrapeResult& result, Instant now, Effects& effects) {
  if (result.number != number_ || result.page >= adapter_->pages.size())
    return;  // of a scrape that was given up
  const Page& page = adapter_->pages[result.page];
  const bool decides = result.page == 0;
  if (decides) waiting_since_.reset();
  if (decides) watch_identity(result, now, effects);
  Reading reading;
  schema::ScrapeState state = state_of(result);
  std::string detail =
      result.fault == FetchFault::none ? fmt::format("HTTP status {}", result.status) : result.detail;
  if (state == schema::ScrapeState::ok)
    if (const auto read = page.read(result.body, reading); !read)
      state = schema::ScrapeState::malformed, detail = read.error().text();
  if (state != schema::ScrapeState::ok) {
    if (decides) take_failure(state, std::move(detail), now, effects);
  } else if (page.each_time) {
    take_reading(std::move(reading), now, effects);
  } else {
    take_sizes(reading, now, effects);
  }
}

/// An engine that shows another certificate than it must is more than unreachable: somebody may stand in its place.
void Machine::watch_identity(const ScrapeResult& result, Instant now, Effects& effects) {
  constexpr auto name = kit::AlertName::engine_untrusted;
  if (result.fault == FetchFault::none) return alerts_.clear(name, effects);
  if (result.fault == FetchFault::untrusted)
    alerts_.raise(name, fmt::format("{} is not trusted: {}", options_.engine, result.detail.substr(0, 512)),
                  options_.engine.str(), now, effects);
  alerts_.repeat_due(now, effects);
}

void Machine::take_failure(schema::ScrapeState state, std::string detail, Instant now, Effects& effects) {
  if (signal_.scrape != state || signal_.failed_readings == 0)
    effects.note("scrape_failed", fmt::format("{}: {}: {}", options_.engine, name_of(state), detail),
                 schema::Severity::warning);
  signal_.scrape = state;
  ++signal_.failed_readings;
  say_signal(now, effects);
}

void Machine::take_reading(Reading reading, Instant now, Effects& effects) {
  if (signal_.failed_readings > 0) effects.note("scrape_recovered", options_.engine.str());
  if (const bool known = last_.has_value(); life_.observe(reading)) {
    if (known) effects.note("engine_restarted", fmt::format("{}: a new incarnation", options_.engine));
    effects.persist.push_back({kept_name(options_.engine), life_.text()});
    learner_.restart();
    last_.reset();
    sizes_next_ = never_yet;
    say_profile(now, effects);
  }
  if (!reading.kv_capacity_tokens) reading.kv_capacity_tokens = said_kv_tokens_;
  measure(reading, now, effects);
  const std::string names = joined(reading.names);
  if (last_ && names != signal_.names_matched)
    effects.note("metric_names_changed", fmt::format("{}: now {}", options_.engine, names));
  signal_.incarnation = life_.incarnation();
  signal_.scrape = schema::ScrapeState::ok;
  signal_.failed_readings = 0;
  ++signal_.readings;
  signal_.running = sane(reading.running, 1e7);
  signal_.waiting = sane(reading.waiting, 1e7);
  signal_.kv_usage = sane(reading.kv_usage, 1.5);
  signal_.kv_capacity_tokens = sane(reading.kv_capacity_tokens, 1e12);
  signal_.block_tokens = sane(reading.block_tokens, 1e6);
  signal_.prompt_tokens_total = sane(reading.prompt_tokens_total, 1e18);
  signal_.cached_tokens_total = sane(reading.cached_tokens_total, 1e18);
  signal_.output_tokens_total = sane(reading.output_tokens_total, 1e18);
  signal_.requests_total = sane(reading.requests_total, 1e18);
  signal_.preemptions_total = sane(reading.preemptions_total, 1e18);
  signal_.names_matched = names;
  last_ = std::move(reading);
  last_at_ = now;
  say_signal(now, effects);
}

void Machine::measure(const Reading& reading, Instant now, Effects& effects) {
  if (!last_) return;
  const std::uint64_t number = learner_.curve().number;
  learner_.observe(*last_, reading, now - last_at_, options_.kv_tokens, now);
  signal_.slowness = learner_.slowness();
  signal_.slowness_samples = learner_.samples();
  signal_.refused_readings = learner_.refused();
  if (learner_.curve().number != number) say_profile(now, effects);
  if (const auto tpot = mean_between(last_->token_time, reading.token_time)) signal_.tpot_s = sane(tpot, 1e4);
  if (const auto ttft = mean_between(last_->first_token_time, reading.first_token_time))
    signal_.ttft_s = sane(ttft, 1e5);
}

void Machine::take_sizes(const Reading& reading, Instant now, Effects& effects) {
  said_kv_tokens_ = reading.kv_capacity_tokens;
  const double kv = reading.kv_capacity_tokens.value_or(options_.kv_tokens);
  const double batch = reading.max_batch.value_or(options_.max_batch);
  if (kv == options_.kv_tokens && batch == options_.max_batch) return;
  options_.kv_tokens = kv;
  options_.max_batch = batch;
  say_profile(now, effects);
}

/// Said at once when the cache was emptied, else now and then.
void Machine::take_cache(const KvState& heard, Instant now, Effects& effects) {
  const KvState before = cache_.value_or(KvState{});
  const bool cleared = cache_ && heard.clears > before.clears;
  if (heard.knowledge != before.knowledge || cleared)
    effects.note(cleared ? "cache_cleared" : "cache_knowledge",
                 fmt::format("{}: {}", options_.engine, name_of(heard.knowledge)));
  if (heard.missed > before.missed || heard.unreadable > before.unreadable)
    effects.note(
        "cache_events_missed",
        fmt::format("{}: {} batches, {} unreadable", options_.engine, heard.missed, heard.unreadable),
        schema::Severity::warning);
  const bool first = !cache_;
  cache_ = heard;
  if (first || cleared || now >= cache_said_ + say_cache_every) return say_cache(now, effects);
  cache_next_ = std::min(cache_next_, cache_said_ + say_cache_every);
  effects.wake_at(next_due());
}

void Machine::say_cache(Instant now, Effects& effects) {
  schema::CacheDigest out;
  out.cluster = options_.cluster;
  out.engine = options_.engine;
  out.incarnation = life_.incarnation();
  out.knowledge = cache_->knowledge;
  out.block_tokens = cache_->block_tokens;
  out.events_skipped = cache_->events_skipped;
  out.clears = cache_->clears;
  out.held_blocks = cache_->held_blocks;
  out.stored_total = cache_->stored, out.removed_total = cache_->removed;
  out.batches = cache_->batches, out.batches_missed = cache_->missed;
  out.batches_replayed = cache_->replayed, out.batches_unreadable = cache_->unreadable;
  effects.say(std::move(out));
  cache_said_ = now;
  cache_next_ = now + repeat_cache;
  effects.wake_at(next_due());
}

void Machine::say_signal(Instant now, Effects& effects) {
  signal_.reading_age = last_at_ == never_yet ? Duration{} : now - last_at_;
  effects.say(signal_);
  effects.wake_at(next_due());
}

void Machine::say_profile(Instant now, Effects& effects) {
  schema::EngineProfile out;
  out.cluster = options_.cluster;
  out.engine = options_.engine;
  out.incarnation = life_.incarnation();
  const Curve& curve = learner_.curve();
  out.step_s = curve.step.a_s;
  out.per_sequence_s = curve.step.b_s;
  out.per_context_token_s = curve.step.k_s;
  out.per_prefill_token_s = curve.step.c_s;
  out.curve = signal_.curve = curve.number;
  out.slowness = signal_.slowness = learner_.slowness();
  out.samples = curve.observations;
  out.least_batch = curve.least_batch;
  out.most_batch = curve.most_batch;
  if (curve.fit) {
    const auto& covariance = curve.fit->log_covariance;
    for (std::size_t i = 0; i < covariance.size(); ++i) {
      out.variance.push_back(covariance[i][i]);
      out.covariance.insert(out.covariance.end(), covariance[i].begin() + static_cast<std::ptrdiff_t>(i),
                            covariance[i].end());
    }
  }
  out.kv_tokens = options_.kv_tokens;
  out.max_batch = options_.max_batch;
  out.models = options_.models;
  effects.say(std::move(out));
  profile_next_ = now + repeat_profile;
}

void Machine::on_wake(Instant now, Effects& effects) {
  if (removed_) return;
  if (profile_next_ == never_yet) scrape_next_ = now;
  if (now >= profile_next_) say_profile(now, effects);
  if (now >= cache_next_) say_cache(now, effects);
  if (waiting_since_ && now >= *waiting_since_ + options_.timeout + grace) {
    waiting_since_.reset();
    take_failure(schema::ScrapeState::timed_out, "no answer from the fetcher", now, effects);
  }
  if (now >= scrape_next_ && !waiting_since_) start_scrape(now, effects);
  effects.wake_at(next_due());
}

void Machine::start_scrape(Instant now, Effects& effects) {
  ++number_;
  waiting_since_ = now;
  scrape_next_ = std::max(scrape_next_ + options_.interval, now + options_.interval / 2);
  const bool sizes = now >= sizes_next_;
  if (sizes) sizes_next_ = now + repeat_profile;
  for (std::size_t page = 0; page < adapter_->pages.size(); ++page) {
    if (!adapter_->pages[page].each_time && !sizes) continue;
    const bool renamed = page == 0 && !options_.metrics_path.empty();
    effects.command(
        {number_, page,
         options_.url + (renamed ? options_.metrics_path : std::string(adapter_->pages[page].path)),
         options_.timeout});
  }
}

Instant Machine::next_due() const {
  const Instant scrape =
      waiting_since_ ? std::max(scrape_next_, *waiting_since_ + options_.timeout + grace) : scrape_next_;
  return std::min({scrape, profile_next_, cache_next_});
}

/// Only the engine's incarnation is kept; without it a restart of this proxy begins a new count, which is safe.
void Machine::on_persist_failed(const kit::Persist& failed, Instant now, Effects& effects) {
  effects.note("not_kept", failed.name, schema::Severity::warning);
  say_profile(now, effects);
  say_signal(now, effects);
}

View Machine::view() const {
  View out;
  out.standing.ready = last_.has_value();
  out.standing.state = fmt::format(
      "{}: {}", options_.engine, last_ || signal_.failed_readings ? name_of(signal_.scrape) : "not read yet");
  out.signal = signal_;
  out.curve = learner_.curve();
  return out;
}

}  // namespace signalbox::engine_proxy
