// Who may ask, for whom, and how much: API keys in front of a gateway.
#include "actors/cluster_router/gateway/api_keys.hpp"
#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;

namespace {

constexpr std::string_view shop_key = "sb-the-key-of-the-shop", bank_key = "sb-the-key-of-the-bank";

/// Only the tenant `shop` may use model m.
const std::string shop_policy = [] {
  std::string text = test_policy;
  text.replace(text.find("tenants *"), 9, "tenants shop");
  return text;
}();

config::ApiKeys keys_of(std::vector<config::ApiKey> rows) {
  config::ApiKeys out;
  out.salt.fill(7);
  rows[0].hash = out.hash(shop_key);
  if (rows.size() > 1) rows[1].hash = out.hash(bank_key);
  out.keys = std::move(rows);
  return out;
}
config::ApiKey key(std::string name, std::string tenant, double requests = 0, double tokens = 0) {
  config::ApiKey out;
  out.name = std::move(name);
  out.tenant = std::move(tenant);
  out.requests_per_minute = requests;
  out.tokens_per_minute = tokens;
  return out;
}

struct Fixture : GatewayFixture {
  Fixture() : GatewayFixture(1, shop_policy) {}

  void allow(std::vector<config::ApiKey> rows) {
    table = ApiKeyTable::build(keys_of(std::move(rows)), table.get());
    gateway->use_api_keys(table);
  }
  /// A request whose answer the router gives by itself.
  std::string refused(std::string_view fields, std::string_view body = R"({"model":"m"})") {
    auto asking = client();
    asking.send(chat(fields, body));
    BOOST_TEST(asking.receives("\r\n\r\n"));
    BOOST_TEST(asking.receives("}}"));
    return asking.received;
  }
  /// A request that an engine answers; returns what the engine heard.
  std::string served(std::string_view fields,
                     std::string_view usage = R"({"usage":{"prompt_tokens":1,"completion_tokens":1}})",
                     std::string_view body = R"({"model":"m","prompt":"hi"})") {
    auto asking = client();
    asking.send(chat(fields, body));
    auto& engine = engine_hears("\"model\"");
    engine.say(json_answer(usage));
    BOOST_TEST(asking.receives("usage"));
    answer = asking.received;
    return heard();
  }
  static std::string bearer(std::string_view sent) {
    return fmt::format("Authorization: Bearer {}\r\n", sent);
  }

  std::shared_ptr<const ApiKeyTable> table;
  std::string answer;
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_FIXTURE_TEST_CASE(who_sends_no_key_or_an_unknown_one_is_refused, Fixture) {
  allow({key("web", "shop")});
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", "missing_api_key"},
      {"Authorization: Basic abc\r\n", "missing_api_key"},
      {"Authorization: Bearer \r\n", "missing_api_key"},
      {bearer("sb-another"), "invalid_api_key"},
      {bearer(bank_key), "invalid_api_key"},
      {"x-api-key: sb-another\r\n", "invalid_api_key"}};
  for (const auto& [fields, reason] : rows) {
    const std::string text = refused(fields);
    BOOST_TEST(text.find("HTTP/1.1 401 ") == 0u, text);
    BOOST_TEST(has(text, fmt::format(R"("code":"{}")", reason)), text);
    BOOST_TEST(has(text, "www-authenticate: Bearer"), text);
    BOOST_TEST(!has(text, "sb-"), text);
  }
  auto asking = client();
  asking.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
  BOOST_TEST(asking.receives("HTTP/1.1 401 "));
  BOOST_TEST(gateway->counters().unauthorized == rows.size() + 1);
}

BOOST_FIXTURE_TEST_CASE(a_key_acts_for_its_tenant_and_stays_here, Fixture) {
  allow({key("web", "shop"), key("teller", "bank")});
  for (const std::string& fields :
       {bearer(shop_key), "authorization: bearer  " + std::string(shop_key) + "\r\n",
        "x-api-key: " + std::string(shop_key) + "\r\n", "Api-Key: " + std::string(shop_key) + "\r\n"}) {
    const std::string seen = served(fields + "x-signalbox-tenant: bank\r\n");
    BOOST_TEST(!has(seen, shop_key), seen);
  }
  // The bank's requests are the bank's, whatever they say of themselves.
  BOOST_TEST(has(refused(bearer(bank_key) + "x-signalbox-tenant: shop\r\n"), "HTTP/1.1 403 "));
}

BOOST_FIXTURE_TEST_CASE(a_key_without_a_tenant_lets_its_requests_name_one, Fixture) {
  allow({key("front", "")});
  served(bearer(shop_key) + "x-signalbox-tenant: shop\r\n");
  BOOST_TEST(has(refused(bearer(shop_key) + "x-signalbox-tenant: bank\r\n"), "HTTP/1.1 403 "));
}

BOOST_FIXTURE_TEST_CASE(a_share_of_requests_that_is_used_up_is_a_429_with_the_time_to_come_again, Fixture) {
  allow({key("web", "shop", 2)});
  served(bearer(shop_key));
  BOOST_TEST(has(answer, "x-ratelimit-limit-requests: 2\r\n"), answer);
  BOOST_TEST(has(answer, "x-ratelimit-remaining-requests: 1\r\n"), answer);
  BOOST_TEST(has(answer, "x-ratelimit-reset-requests: "), answer);
  BOOST_TEST(!has(answer, "x-ratelimit-limit-tokens"), answer);
  served(bearer(shop_key));
  const std::string text = refused(bearer(shop_key));
  BOOST_TEST(text.find("HTTP/1.1 429 ") == 0u, text);
  BOOST_TEST(has(text, R"("code":"rate_limit_exceeded")"), text);
  BOOST_TEST(has(text, "x-signalbox-reason: rate_limit_requests\r\n"), text);
  BOOST_TEST(has(text, "retry-after: 30\r\n"), text);
  BOOST_TEST(has(text, "x-ratelimit-remaining-requests: 0\r\n"), text);
  BOOST_TEST(gateway->counters().rate_limited == 1u);
}

BOOST_FIXTURE_TEST_CASE(tokens_are_counted_as_the_engine_counts_them_in_the_end, Fixture) {
  allow({key("web", "shop", 0, 1000)});
  // 900 may come, and 10 do: the rest is given back.
  const std::string body = R"({"model":"m","prompt":"hi","max_tokens":899})";
  served(bearer(shop_key), R"({"usage":{"prompt_tokens":2,"completion_tokens":8}})", body);
  BOOST_TEST((has(answer, "x-ratelimit-remaining-tokens: 100\r\n") ||
              has(answer, "x-ratelimit-remaining-tokens: 101\r\n")),
             answer);
  const Instant now = loop.now();
  const auto state = table->find(shop_key);
  BOOST_TEST(state->tokens.remaining(now) > 980.0);
  BOOST_TEST(state->tokens.remaining(now) < 1000.0);
  // More came than was said: it is owed, and the next one waits.
  served(bearer(shop_key), R"({"usage":{"prompt_tokens":2000,"completion_tokens":0}})");
  const std::string text = refused(bearer(shop_key));
  BOOST_TEST(has(text, "x-signalbox-reason: rate_limit_tokens\r\n"), text);
  BOOST_TEST(has(text, "x-ratelimit-remaining-tokens: 0\r\n"), text);
}

BOOST_FIXTURE_TEST_CASE(what_the_router_refuses_costs_no_tokens, Fixture) {
  allow({key("web", "bank", 0, 1000)});
  BOOST_TEST(
      has(refused(bearer(shop_key), R"({"model":"m","prompt":"hi","max_tokens":800})"), "HTTP/1.1 403 "));
  BOOST_TEST(table->find(shop_key)->tokens.remaining(loop.now()) > 999.0);
}

BOOST_FIXTURE_TEST_CASE(a_new_table_keeps_what_was_taken_and_open_answers, Fixture) {
  allow({key("web", "shop", 3)});
  served(bearer(shop_key));
  auto asking = client();
  asking.send(chat(bearer(shop_key)));
  auto& engine = engine_hears("messages");
  engine.say(stream_head + chunk("data: {}\n\n"));
  BOOST_TEST(asking.receives("data: {}"));
  allow({key("web", "shop", 3)});
  const auto taken = [&] { return 3.0 - table->find(shop_key)->requests.remaining(loop.now()); };
  BOOST_TEST(taken() > 1.9);
  allow({key("web", "shop", 30)});  // another limit begins anew
  BOOST_TEST(table->find(shop_key)->requests.remaining(loop.now()) == 30.0);
  table = ApiKeyTable::build(config::ApiKeys{}, table.get());
  gateway->use_api_keys(table);
  BOOST_TEST(has(refused(bearer(shop_key)), "HTTP/1.1 401 "));
  engine.say(chunk("data: [DONE]\n\n") + "0\r\n\r\n");
  BOOST_TEST(asking.receives("[DONE]"));
}

BOOST_AUTO_TEST_CASE(a_key_asks_for_no_more_than_it_may) {
  RequestReader reader({});
  using C = Criticality;
  struct Row {
    std::optional<C> asked;
    C most;
    std::optional<C> taken;
  };
  for (const Row& row :
       {Row{{}, C::critical, {}}, Row{{}, C::sheddable, C::sheddable},
        Row{C::critical, C::standard, C::standard}, Row{C::sheddable, C::standard, C::sheddable},
        Row{C::critical, C::critical, C::critical}}) {
    std::string body = R"({"model":"m"})";
    const std::size_t size = body.size();
    body.append(64, '\0');
    net::Request request;
    request.head.method = "POST", request.head.target = "/v1/completions";
    if (row.asked) request.head.fields.push_back({"x-signalbox-criticality", to_string(*row.asked)});
    request.body = std::string_view(body).substr(0, size);
    Reading reading;
    BOOST_REQUIRE(reader.read(request, reading, {"t", row.most}).has_value());
    BOOST_TEST((reading.facts.asked == row.taken));
    BOOST_TEST(reading.facts.tenant == "t");
  }
}

BOOST_AUTO_TEST_CASE(the_same_prompt_of_another_tenant_or_for_another_model_is_another_one) {
  RequestReader reader({});
  const auto blocks = [&](std::string_view tenant, std::string_view model) {
    std::string body = fmt::format(R"({{"model":"{}","prompt":"{}"}})", model, std::string(5'000, 'x'));
    const std::size_t size = body.size();
    body.append(64, '\0');
    net::Request request;
    request.head.method = "POST", request.head.target = "/v1/completions";
    request.body = std::string_view(body).substr(0, size);
    Reading reading;
    BOOST_REQUIRE(reader.read(request, reading, {std::string(tenant), Criticality::standard}).has_value());
    return reading.facts.blocks;
  };
  const routing::PromptBlocks one = blocks("t", "m");
  BOOST_TEST(one.size() == 4u);
  BOOST_TEST((blocks("t", "m") == one));
  for (const auto& other : {blocks("u", "m"), blocks("t", "n")})
    for (std::size_t i = 0; i < one.size(); ++i) BOOST_TEST(other[i] != one[i]);
}

BOOST_AUTO_TEST_CASE(a_bucket_gives_a_minutes_worth_at_once_and_then_its_rate) {
  const auto at = [](Duration since) { return instant_at(1h + since); };
  TokenBucket bucket(60);
  for (int i = 0; i < 60; ++i) BOOST_TEST(bucket.take(1, at(0s)));
  BOOST_TEST(!bucket.take(1, at(0s)));
  BOOST_TEST((bucket.until_free(1, at(0s)) == 1s));
  BOOST_TEST(!bucket.take(1, at(999ms)));
  BOOST_TEST(bucket.take(1, at(1s)));
  BOOST_TEST(bucket.remaining(at(31s)) == 30.0, boost::test_tools::tolerance(1e-9));
  BOOST_TEST((bucket.until_full(at(31s)) == 30s));
  bucket.correct(-20, at(31s));
  BOOST_TEST(bucket.remaining(at(31s)) == 50.0, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(bucket.remaining(at(2h)) == 60.0);
  // What is larger than a minute's worth passes a full bucket, and is owed.
  BOOST_TEST(bucket.take(90, at(2h)));
  BOOST_TEST((bucket.until_free(60, at(2h)) == 90s));
  BOOST_TEST(TokenBucket(0).take(1e18, at(0s)));
}
