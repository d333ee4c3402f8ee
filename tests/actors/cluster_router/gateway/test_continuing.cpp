// Streams that go on at another engine when theirs breaks, where the policy lets them.
#include <algorithm>
#include <charconv>
#include <map>

#include "tests/actors/cluster_router/gateway/fixture.hpp"

using namespace signalbox;
using namespace signalbox::gateway;
using namespace signalbox::net;

namespace {

std::string continuing_policy(const std::string& retry = "ratio 100% burst 50 attempts 2") {
  std::string out = test_policy;
  const std::string_view all = "criticality critical residency any }";
  out.replace(out.find(all), all.size(), "criticality critical residency any continue streams }");
  const std::string_view numbers = "ratio 100% burst 50 attempts 2";
  return out.replace(out.find(numbers), numbers.size(), retry);
}

struct Continuing : GatewayFixture {
  explicit Continuing(const std::string& policy = continuing_policy(), std::size_t count = 2)
      : GatewayFixture(count, policy, {}, 1 << 20) {}
  /// Reads until the client's connection ends; the body without its chunks' frames.
  std::string rest_of(RawClient& client) {
    BOOST_TEST(turn_until(loop, [&] { return client.poll(), client.closed; }));
    std::string_view left = std::string_view(client.received).substr(client.received.find("\r\n\r\n") + 4);
    std::string out;
    while (!left.empty()) {
      std::size_t size = 0;
      std::from_chars(left.data(), left.data() + left.size(), size, 16);
      if (size == 0) return out;
      left.remove_prefix(left.find("\r\n") + 2);
      out += left.substr(0, size);
      left.remove_prefix(size + 2);
    }
    return out + "[cut]";
  }
};

std::string piece(std::string_view id, std::string_view text, std::string_view finish = "null") {
  return fmt::format(
             R"(data: {{"id":"{}","object":"chat.completion.chunk","created":7,"model":"m","choices":[{{"index":0,"delta":{{"content":"{}"}},"finish_reason":{}}}]}})",
             id, text, finish) +
         "\n\n";
}
std::string role(std::string_view id) {
  return fmt::format(
             R"(data: {{"id":"{}","created":7,"choices":[{{"index":0,"delta":{{"role":"assistant","content":""}},"finish_reason":null}}]}})",
             id) +
         "\n\n";
}
std::string usage(std::string_view id, int prompt, int completion) {
  return fmt::format(
             R"(data: {{"id":"{}","created":7,"choices":[],"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}}}})",
             id, prompt, completion, prompt + completion) +
         "\n\n";
}
const std::string done = "data: [DONE]\n\n";
const std::string asked =
    R"({"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":10,"temperature":0.5})";

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_broken_stream_goes_on_elsewhere_byte_for_byte_as_one, Continuing) {
  for (const bool clean_end : {false, true}) {
    RawClient client = this->client();
    client.send(chat("Connection: close\r\n", asked));
    std::size_t first = 9, second = 9;
    auto& broken = engine_hears("\"hi\"", &first);
    broken.say(stream_head + chunk(role("a") + piece("a", "Once ")) +
               chunk(piece("a", "up\\u00f6n").substr(0, 40)));
    BOOST_TEST(client.receives("Once "));
    if (clean_end) broken.say(chunk(""));
    broken.hang_up();
    auto& engine = engine_hears("\"hi\"", &second);
    BOOST_TEST(first != second);
    BOOST_TEST(
        heard().substr(heard().find("\r\n\r\n") + 4) ==
        R"({"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Once "}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"temperature":0.5,"add_generation_prompt":false,"continue_final_message":true})");
    engine.say(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: "
        "chunked\r\n\r\n" +
        chunk(role("b") + piece("b", "a time").substr(0, 25)) + chunk(piece("b", "a time").substr(25)) +
        chunk(piece("b", ".", "\"stop\"") + usage("b", 21, 2) + done) + chunk(""));
    const std::string body = rest_of(client);
    const std::string expected = role("a") + piece("a", "Once ") +
                                 fmt::format(": continued after 1 tokens by engine e{}\n\n", second) +
                                 piece("a", "a time") + piece("a", ".", "\"stop\"") + usage("a", 20, 3) +
                                 done;
    BOOST_TEST(body == expected);
  }
  BOOST_TEST(gateway->counters().streams_continued == 2u);
  BOOST_TEST(gateway->counters().streams_broken == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_completion_goes_on_with_the_text_at_the_end_of_its_prompt, Continuing) {
  const auto event = [](std::string_view id, std::string_view text, std::string_view finish = "null") {
    return fmt::format(
               R"(data: {{"id":"{}","created":1,"choices":[{{"index":0,"text":"{}","logprobs":null,"finish_reason":{}}}]}})",
               id, text, finish) +
           "\n\n";
  };
  RawClient client = this->client();
  client.send(chat("Connection: close\r\n", R"({"model":"m","prompt":"One \"two\"","stream":true})",
                   "/v1/completions"));
  auto& broken = engine_hears("two");
  broken.say(stream_head + chunk(event("a", " three\\n") + event("a", " four")));
  BOOST_TEST(client.receives("four"));
  broken.reset();
  auto& engine = engine_hears("three");
  BOOST_TEST(heard().substr(heard().find("\r\n\r\n") + 4) ==
             R"({"model":"m","prompt":"One \"two\" three\u000a four","stream":true})");
  engine.say(stream_head + chunk(event("b", " five", "\"stop\"") + done) + chunk(""));
  BOOST_TEST(client.receives("[DONE]"));
  BOOST_TEST(client.received.find(R"("id":"b")") == std::string::npos);
  engine.hang_up();
  rest_of(client);
}

BOOST_FIXTURE_TEST_CASE(before_any_text_the_request_is_sent_as_it_was, Continuing) {
  RawClient client = this->client();
  client.send(chat("Connection: close\r\n", asked));
  auto& broken = engine_hears("\"hi\"");
  broken.say(stream_head + chunk(role("a")));
  BOOST_TEST(client.receives("assistant"));
  broken.hang_up();
  auto& engine = engine_hears("\"hi\"");
  BOOST_TEST(heard().substr(heard().find("\r\n\r\n") + 4) == asked);
  engine.say(stream_head + chunk(role("b") + piece("b", "x", "\"stop\"") + done) + chunk(""));
  BOOST_TEST(client.receives("[DONE]"));
  engine.hang_up();
  rest_of(client);
}

BOOST_AUTO_TEST_CASE(what_asks_for_more_than_text_or_comes_too_late_breaks_as_before) {
  const std::string messages = R"("messages":[{"role":"user","content":"hi"}],"stream":true)";
  struct Row {
    const char* name;
    std::string body;
    std::string events;
  };
  for (
      const Row& row :
      {Row{"tools", R"({"model":"m","tools":[],)" + messages + "}", piece("a", "x")},
       Row{"log probabilities", R"({"model":"m","logprobs":true,)" + messages + "}", piece("a", "x")},
       Row{"two choices", R"({"model":"m","n":2,)" + messages + "}", piece("a", "x")},
       Row{"structured output", R"({"model":"m","response_format":{"type":"json_object"},)" + messages + "}",
           piece("a", "x")},
       Row{"an unknown field", R"({"model":"m","guided_regex":".*",)" + messages + "}", piece("a", "x")},
       Row{"a prefilled answer",
           R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a"}]})",
           piece("a", "x")},
       Row{"all tokens used", R"({"model":"m","max_tokens":1,)" + messages + "}", piece("a", "x")},
       Row{"a tool call", R"({"model":"m",)" + messages + "}",
           "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{}]}}]}\n\n" +
               piece("a", "x")},
       Row{"reasoning", R"({"model":"m",)" + messages + "}",
           "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"h\"}}]}\n\n" +
               piece("a", "x")},
       Row{"its text was complete", R"({"model":"m",)" + messages + "}", piece("a", "x", "\"stop\"")}}) {
    Continuing f;
    RawClient client = f.client();
    client.send(chat("Connection: close\r\n", row.body));
    auto& broken = f.engine_hears("\"hi\"");
    broken.say(stream_head + chunk(row.events));
    BOOST_TEST(client.receives("\"x\""), row.name);
    broken.hang_up();
    const std::string body = f.rest_of(client);
    BOOST_TEST(body.starts_with(row.events), row.name);
    BOOST_TEST(body.find("data: {\"error\":") != std::string::npos, row.name);
    BOOST_TEST(body.find("[DONE]") == std::string::npos, row.name);
    BOOST_TEST(f.gateway->counters().streams_continued == 0u, row.name);
  }
}

BOOST_FIXTURE_TEST_CASE(what_passes_as_it_comes_ends_its_cut_event_before_the_error, Continuing) {
  RawClient client = this->client();
  client.send(chat("Connection: close\r\n", asked));
  auto& broken = engine_hears("\"hi\"");
  const std::string reasoning =
      "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"h\"}}]}\n\n";
  broken.say(stream_head + chunk(reasoning));
  BOOST_TEST(client.receives("\"h\""));
  broken.say(chunk("data: {\"id\":\"a\",\"cho"));
  BOOST_TEST(client.receives("\"cho"));
  broken.hang_up();
  const std::string body = rest_of(client);
  BOOST_TEST(body.starts_with(reasoning + "data: {\"id\":\"a\",\"cho\n\ndata: {\"error\":"));
  BOOST_TEST(gateway->counters().streams_continued == 0u);
}

BOOST_FIXTURE_TEST_CASE(each_engine_is_counted_what_it_made, Continuing) {
  RawClient client = this->client();
  client.send(chat("Connection: close\r\n", asked));
  auto& broken = engine_hears("\"hi\"");
  broken.say(stream_head + chunk(piece("a", "x") + piece("a", "y")));
  BOOST_TEST(client.receives("\"y\""));
  broken.hang_up();
  auto& engine = engine_hears("\"hi\"");
  engine.say(stream_head + chunk(piece("b", "z", "\"stop\"") + usage("b", 12, 1) + done) + chunk(""));
  BOOST_TEST(client.receives("[DONE]"));
  engine.hang_up();
  rest_of(client);
  std::map<std::uint32_t, std::uint64_t> made;
  for (const auto& row : gateway->dispatcher().drain(loop.now()).outcomes)
    made[row.engine.value] += row.output_tokens;
  BOOST_TEST(made.size() == 2u);
  BOOST_TEST(made[0] + made[1] == 3u);
  BOOST_TEST(std::min(made[0], made[1]) == 1u);
}

BOOST_AUTO_TEST_CASE(nothing_is_continued_without_the_policy_the_budget_or_memory) {
  for (const std::string& policy : {test_policy, continuing_policy("ratio 0% burst 0 attempts 2"),
                                    continuing_policy("ratio 100% burst 50 attempts 1")}) {
    Continuing f(policy);
    RawClient client = f.client();
    client.send(chat("Connection: close\r\n", asked));
    auto& broken = f.engine_hears("\"hi\"");
    broken.say(stream_head + chunk(piece("a", "x")));
    BOOST_TEST(client.receives("\"x\""));
    broken.hang_up();
    BOOST_TEST(f.rest_of(client).find("data: {\"error\":") != std::string::npos);
  }
}

BOOST_FIXTURE_TEST_CASE(when_the_second_engine_fails_too_the_client_gets_an_error_event, Continuing) {
  struct Row {
    const char* name;
    std::string says;
  };
  for (const Row& row :
       {Row{"dies", ""}, Row{"refuses", json_answer("{}", "400 Bad Request", "Connection: close\r\n")},
        Row{"is busy", json_answer("{}", "503 Service Unavailable", "Connection: close\r\n")},
        Row{"answers whole", json_answer("{\"ok\":1}", "200 OK", "Connection: close\r\n")},
        Row{"dies in its turn", stream_head + chunk(role("b") + piece("b", "y"))}}) {
    RawClient client = this->client();
    client.send(chat("Connection: close\r\n", asked));
    auto& broken = engine_hears("\"hi\"");
    broken.say(stream_head + chunk(piece("a", "x")));
    BOOST_TEST(client.receives("\"x\""), row.name);
    broken.hang_up();
    auto& engine = engine_hears("\"hi\"");
    engine.say(row.says);
    engine.hang_up();
    const std::string body = rest_of(client);
    BOOST_TEST(body.find("data: {\"error\":") != std::string::npos, row.name);
    BOOST_TEST(body.find("[DONE]") == std::string::npos, row.name);
    BOOST_TEST(client.received.find("HTTP/1.1") == client.received.rfind("HTTP/1.1"), row.name);
  }
}

BOOST_FIXTURE_TEST_CASE(a_client_that_leaves_between_two_engines_frees_everything, Continuing) {
  RawClient client = this->client();
  client.send(chat("", asked));
  auto& broken = engine_hears("\"hi\"");
  broken.say(stream_head + chunk(piece("a", "x")));
  BOOST_TEST(client.receives("\"x\""));
  broken.hang_up();
  auto& engine = engine_hears("\"hi\"");
  client.leave();
  BOOST_TEST(sees_close(engine));
  BOOST_TEST(turn_until(loop, [&] { return gateway->dispatcher().open() == 0; }));
  BOOST_TEST(gateway->counters().clients_left_streaming == 1u);
  BOOST_TEST(gateway->counters().clients_left_waiting == 0u);
}
