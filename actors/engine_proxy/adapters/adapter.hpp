// One engine interface each: which pages to read, and what they say in our words. A new engine kind is one file with an
// Adapter in it and a line in adapter.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/base/words.hpp"

namespace signalbox::engine_proxy {

/// A sum and its count since the engine started; a mean over a span is the quotient of their differences.
struct Accumulated {
  double sum_s = 0;
  double count = 0;
};

/// What one reading says. What the engine does not say is absent, never zero. Totals count since its start.
struct Reading {
  std::optional<double> running;   ///< requests in the batch
  std::optional<double> waiting;   ///< requests waiting for the batch
  std::optional<double> kv_usage;  ///< share of the KV memory in use
  std::optional<double> kv_capacity_tokens;
  std::optional<double> block_tokens;
  std::optional<double> prompt_tokens_total;
  std::optional<double> cached_tokens_total;  ///< prompt tokens found in the cache
  std::optional<double> output_tokens_total;
  std::optional<double> requests_total;  ///< requests finished
  std::optional<double> preemptions_total;
  std::optional<Accumulated> token_time;        ///< time between output tokens
  std::optional<Accumulated> first_token_time;  ///< time to first token
  std::optional<double> steps_total;            ///< steps that the engine took
  std::optional<double> start_time_s;           ///< of the process, in its wall time: names the incarnation
  std::optional<double> max_batch;
  std::vector<std::string> names;  ///< the source names that were found, so that a rename shows
};

/// A page of an engine and how to read it.
struct Page {
  std::string_view path;
  bool each_time;  ///< else at the start of a life and each minute, for the facts that do not move: sizes
  /// Adds to `reading`. Errors: what cannot be read. A page that lacks a fact leaves it absent.
  Status (*read)(std::string_view body, Reading& reading);
};

struct Adapter {
  EngineKind kind;
  std::span<const Page> pages;  ///< the first one is the one that decides whether the engine answers
};

/// The adapter of that kind; for kinds without metrics (openai and those that nobody wrote yet) one that only asks for
/// /v1/models, so that reachability is known.
const Adapter& adapter_of(EngineKind kind);

namespace detail {
extern const Adapter vllm, sim, sglang, llamacpp;
}

}  // namespace signalbox::engine_proxy
