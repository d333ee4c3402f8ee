// Who asks: API keys as an event loop looks them up, and what each may still take. Loops share one table.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/gateway/token_bucket.hpp"
#include "actors/cluster_router/http/head.hpp"
#include "actors/cluster_router/routing/request.hpp"
#include "cluster-config/schema/api_keys.hpp"

namespace signalbox::gateway {

/// One key, with what its requests took.
struct ApiKeyState {
  explicit ApiKeyState(config::ApiKey declared)
      : key(std::move(declared)), requests(key.requests_per_minute), tokens(key.tokens_per_minute) {}

  const config::ApiKey key;
  TokenBucket requests;
  TokenBucket tokens;
};

/// What came of asking for one request's share.
struct Grant {
  bool granted = true;
  std::string_view short_of;  ///< "requests" or "tokens" when it was not
  Duration retry_after{};     ///< then
};

class ApiKeyTable {
 public:
  /// Keys whose limits did not change go on from where they are in `before`.
  static std::shared_ptr<const ApiKeyTable> build(const config::ApiKeys& keys, const ApiKeyTable* before);

  /// Null for a key that is not known.
  std::shared_ptr<ApiKeyState> find(std::string_view key) const;
  std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    Digest hash;
    std::shared_ptr<ApiKeyState> state;
  };
  config::ApiKeys declared_;
  std::vector<Row> rows_;  ///< by hash
};

/// The key that a request carries, as OpenAI's, Anthropic's or Azure's clients send it; empty if none.
std::string_view key_of(const http::Fields& fields);

/// The tokens that a request is charged with when it comes: its prompt, and what it may answer where it says so.
double charge_of(const routing::RequestFacts& facts);

/// Takes one request and this many tokens, both or neither.
Grant take_share(ApiKeyState& state, double tokens, Instant now);

/// The x-ratelimit-... lines of an answer; empty for a key without limits.
std::string rate_limit_lines(const ApiKeyState& state, Instant now);

}  // namespace signalbox::gateway
