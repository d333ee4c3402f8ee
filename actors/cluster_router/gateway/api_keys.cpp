#include "actors/cluster_router/gateway/api_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace signalbox::gateway {
namespace {

bool same_limits(const config::ApiKey& a, const config::ApiKey& b) {
  return a.requests_per_minute == b.requests_per_minute && a.tokens_per_minute == b.tokens_per_minute;
}
bool same(const config::ApiKey& a, const config::ApiKey& b) {
  return a.name == b.name && a.tenant == b.tenant && a.most == b.most && same_limits(a, b);
}

/// A duration as OpenAI writes it: "120ms", "1.5s", "6m0s".
std::string reset_text(Duration left) {
  const double seconds = to_seconds(left);
  if (seconds < 1) return fmt::format("{}ms", std::ceil(seconds * 1000));
  if (seconds < 60) return fmt::format("{:.3g}s", seconds);
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  return fmt::format("{}m{}s", whole / 60, whole % 60);
}

void add_lines(const TokenBucket& bucket, std::string_view what, Instant now, std::string& out) {
  if (!bucket.limits()) return;
  fmt::format_to(std::back_inserter(out),
                 "x-ratelimit-limit-{0}: {1:.0f}\r\nx-ratelimit-remaining-{0}: "
                 "{2:.0f}\r\nx-ratelimit-reset-{0}: {3}\r\n",
                 what, bucket.per_minute(), std::floor(bucket.remaining(now)),
                 reset_text(bucket.until_full(now)));
}

}  // namespace

std::shared_ptr<const ApiKeyTable> ApiKeyTable::build(const config::ApiKeys& keys,
                                                      const ApiKeyTable* before) {
  auto out = std::make_shared<ApiKeyTable>();
  out->declared_ = keys;
  for (const config::ApiKey& key : keys.keys) {
    std::shared_ptr<ApiKeyState> state;
    if (before != nullptr) {
      const auto known = std::ranges::lower_bound(before->rows_, key.hash, {}, &Row::hash);
      if (known != before->rows_.end() && known->hash == key.hash && same(known->state->key, key))
        state = known->state;
    }
    out->rows_.push_back({key.hash, state ? std::move(state) : std::make_shared<ApiKeyState>(key)});
  }
  std::ranges::sort(out->rows_, {}, &Row::hash);
  return out;
}

std::shared_ptr<ApiKeyState> ApiKeyTable::find(std::string_view key) const {
  // The search sees hashes alone, whose bytes a sender without the salt can neither choose nor predict; the verdict takes the
  // same time for every hash.
  const Digest hash = declared_.hash(key);
  const auto found = std::ranges::lower_bound(rows_, hash, {}, &Row::hash);
  return found != rows_.end() && equal_in_constant_time(found->hash, hash) ? found->state : nullptr;
}

std::string_view key_of(const http::Fields& fields) {
  constexpr std::string_view scheme = "bearer ";
  if (const auto said = http::find(fields, "authorization")) {
    if (said->size() <= scheme.size() || !http::same_name(said->substr(0, scheme.size()), scheme)) return {};
    std::string_view key = said->substr(scheme.size());
    while (key.starts_with(' ')) key.remove_prefix(1);
    return key;
  }
  if (const auto said = http::find(fields, "x-api-key")) return *said;
  return http::find(fields, "api-key").value_or("");
}

double charge_of(const routing::RequestFacts& facts) {
  return facts.estimated_prompt_tokens() + static_cast<double>(facts.max_output_tokens);
}

Grant take_share(ApiKeyState& state, double tokens, Instant now) {
  if (!state.requests.take(1, now)) return {false, "requests", state.requests.until_free(1, now)};
  if (state.tokens.take(tokens, now)) return {};
  state.requests.correct(-1, now);
  return {false, "tokens", state.tokens.until_free(tokens, now)};
}

std::string rate_limit_lines(const ApiKeyState& state, Instant now) {
  std::string out;
  add_lines(state.requests, "requests", now, out);
  add_lines(state.tokens, "tokens", now, out);
  return out;
}

}  // namespace signalbox::gateway
