#include "cluster-config/policy/knobs.hpp"

#include <fmt/format.h>

#include <array>
#include <type_traits>

namespace signalbox::policy {
namespace {

double read(double value) { return value; }
double read(Duration value) { return to_seconds(value); }
double read(std::uint32_t value) { return value; }

void assign(double& field, double value) { field = value; }
void assign(Duration& field, double value) { field = from_seconds(value); }
void assign(std::uint32_t& field, double value) { field = static_cast<std::uint32_t>(value); }

template <auto Part, auto Field>
double get_field(const CompiledPolicy& policy) {
  return read((policy.*Part).*Field);
}
template <auto Part, auto Field>
void set_field(CompiledPolicy& policy, double value) {
  assign((policy.*Part).*Field, value);
}
template <FailureKind Kind>
double get_factor(const CompiledPolicy& policy) {
  return policy.penalty.of(Kind);
}
template <FailureKind Kind>
void set_factor(CompiledPolicy& policy, double value) {
  policy.penalty.factor[static_cast<std::size_t>(Kind)] = value;
}

using P = CompiledPolicy;
constexpr auto share = Dimension::share;
constexpr auto factor = Dimension::factor;
constexpr auto count = Dimension::count;
constexpr auto time = Dimension::time;

template <auto Part, auto Field>
constexpr Knob knob(std::string_view clause, std::string_view group, std::string_view word,
                    Dimension dimension, double low, double high, std::string_view after,
                    std::string_view sentence) {
  return {clause,
          group,
          word,
          dimension,
          low,
          high,
          after,
          sentence,
          get_field<Part, Field>,
          set_field<Part, Field>};
}
constexpr Knob later(Knob knob) {
  knob.later = true;
  return knob;
}
template <FailureKind Kind>
constexpr Knob penalty(std::string_view word, std::string_view sentence) {
  return {"penalty", "", word, factor, 0.001, 1, "", sentence, get_factor<Kind>, set_factor<Kind>};
}

constexpr std::array table{
    knob<&P::retry, &Retry::budget_ratio>("retry", "", "ratio", share, 0, 1, "",
                                          "retries over first attempts that a router's budget earns"),
    knob<&P::retry, &Retry::budget_burst>("retry", "", "burst", count, 0, 10'000, "",
                                          "retries that the budget holds at most"),
    knob<&P::retry, &Retry::attempts>("retry", "", "attempts", count, 1, 5, "",
                                      "attempts of one request, the first included"),
    knob<&P::retry, &Retry::deadline_share>("retry", "", "within", share, 0, 1, "of deadline",
                                            "no retry once this share of the deadline has passed"),
    knob<&P::retry, &Retry::hedge_tokens>("retry", "hedge", "tokens", count, 0, 1e6, "",
                                          "a request of no more tokens, prompt and answer, goes to a second "
                                          "engine when its first byte is late; "
                                          "0: never"),
    knob<&P::retry, &Retry::hedge_quantile>("retry", "hedge", "quantile", share, 0.5, 0.999, "",
                                            "late: later than this share of its class's first bytes"),
    knob<&P::retry, &Retry::hedge_least>("retry", "hedge", "least", time, 0.001, 3600, "",
                                         "and later than this"),

    penalty<FailureKind::connect>("connect", "what one refused connection multiplies the engine's weight by"),
    penalty<FailureKind::reset>("reset", "the same for a connection closed before the response head"),
    penalty<FailureKind::timeout>("timeout", "the same for a first byte that came too late"),
    penalty<FailureKind::status>("status", "the same for a 5xx answer"),
    penalty<FailureKind::broken>("broken", "the same for a stream that ended before its end"),
    penalty<FailureKind::slow>("slow", "the same for an outlier in latency"),
    knob<&P::penalty, &Penalty::half_life>("penalty", "", "half_life", time, 0.1, 600, "",
                                           "after which half of the evidence is forgotten"),
    knob<&P::penalty, &Penalty::floor>("penalty", "", "floor", factor, 0, 1, "",
                                       "the least that a weight is multiplied by"),
    knob<&P::penalty, &Penalty::retry_after_cap>("penalty", "", "retry_after", time, 0, 600, "",
                                                 "an engine's own Retry-After is honoured up to this"),

    knob<&P::timeouts, &Timeouts::connect>("timeouts", "", "connect", time, 0.01, 60, "",
                                           "for a connection to an engine"),
    knob<&P::timeouts, &Timeouts::first_byte>("timeouts", "", "first_byte", time, 0.1, 3600, "",
                                              "from the request to the response's first byte"),
    knob<&P::timeouts, &Timeouts::gap>("timeouts", "", "gap", time, 0.1, 3600, "",
                                       "between two chunks of a stream"),
    knob<&P::timeouts, &Timeouts::total>("timeouts", "", "total", time, 1, 86'400, "",
                                         "for a whole request; a client may ask for less, never for more"),

    knob<&P::eject, &Eject::max_share>("eject", "", "max", share, 0, 1, "of engines",
                                       "what a health-monitor may take out by its own judgement"),
    knob<&P::eject, &Eject::panic_below>(
        "eject", "panic", "below", share, 0, 1, "ready",
        "under this share of ready engines only those that are gone are left out"),

    knob<&P::stale, &Stale::signal_soft>("stale", "signal", "soft", time, 0.05, 3600, "",
                                         "age from which a signal is marked as old"),
    knob<&P::stale, &Stale::signal_hard>("stale", "signal", "hard", time, 0.05, 3600, "",
                                         "age from which a signal is unknown"),
    knob<&P::stale, &Stale::snapshot_warn>("stale", "snapshot", "warn", time, 0.1, 86'400, "",
                                           "age from which a router warns of its snapshot, refuses nobody "
                                           "for it, and draws half of the candidates evenly"),
    knob<&P::stale, &Stale::snapshot_degrade>(
        "stale", "snapshot", "degrade", time, 0.1, 86'400, "to least_loaded",
        "age from which a router chooses by load within the allowed set"),

    knob<&P::health, &Health::degraded_capacity>("health", "", "degraded", share, 0, 1, "of capacity",
                                                 "what a plan may expect of a degraded engine"),
    knob<&P::health, &Health::starting_capacity>("health", "", "starting", share, 0, 1, "of capacity",
                                                 "what a plan may expect of an engine that has just started"),

    knob<&P::lead, &Lead::coverage>("lead", "", "coverage", share, 0, 1, "of engines",
                                    "a leader that hears less of the fleet does not plan anew"),

    knob<&P::queue, &Queue::max_wait>("queue", "", "wait", time, 0, 600, "",
                                      "of one request at a router, at most"),
    knob<&P::queue, &Queue::depth>("queue", "", "depth", count, 0, 100'000, "",
                                   "requests of one class that wait at one router"),
    knob<&P::queue, &Queue::target>(
        "queue", "", "target", time, 0, 600, "",
        "delay of first bytes from which a router sends an engine less and queues itself; 0s: never"),
    knob<&P::queue, &Queue::retry_after_low>("queue", "retry_after", "from", time, 0, 600, "",
                                             "least Retry-After of a refusal"),
    knob<&P::queue, &Queue::retry_after_high>("queue", "retry_after", "to", time, 0, 600, "",
                                              "greatest Retry-After of a refusal"),

    later(knob<&P::cache, &Cache::group_memory>(
        "cache", "", "groups", share, 0, 1, "of memory",
        "what hot prefix groups that a plan places may hold of an engine")),

    knob<&P::routing, &Routing::eta>("routing", "", "eta", factor, 0, 100, "",
                                     "price of the engine time that a request adds"),
    knob<&P::routing, &Routing::eta_local>("routing", "", "eta_local", factor, 0, 100, "",
                                           "the same without a plan"),
    knob<&P::routing, &Routing::tw>("routing", "", "tw", factor, 0, 100, "",
                                    "weight of the time to the first token"),
    knob<&P::routing, &Routing::kv_guard>(
        "routing", "", "kv_guard", factor, 0.1, 2, "",
        "KV memory, as a share, past which an engine is skipped while another fits"),
    knob<&P::routing, &Routing::xi>(
        "routing", "", "xi", factor, 0, 10, "",
        "what other routers did since the last signal, as a share of what this one did"),
    knob<&P::routing, &Routing::draws>("routing", "", "draws", count, 1, 16, "",
                                       "candidates drawn by weight"),
};

constexpr std::array<Promise, 3> promise_table{{
    {"retry", "before first_byte"},
    {"retry", "other engine"},
    {"stale", "never stop"},
}};

}  // namespace

std::span<const Knob> knobs() { return table; }
std::span<const Promise> promises() { return promise_table; }

std::string numbers_as_markdown() {
  const CompiledPolicy defaults;
  std::string out;
  for (const Knob& knob : knobs())
    out +=
        fmt::format("| `{}{}{} {}` | {} to {} | {} | {} |\n", knob.clause, knob.group.empty() ? "" : " ",
                    knob.group, knob.word, write(knob.low, knob.dimension), write(knob.high, knob.dimension),
                    write(knob.get(defaults), knob.dimension), knob.sentence);
  return out;
}

}  // namespace signalbox::policy
