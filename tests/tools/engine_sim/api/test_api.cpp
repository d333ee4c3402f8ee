#include <simdjson.h>

#include <boost/test/unit_test.hpp>

#include "tools/engine_sim/api/answer.hpp"
#include "tools/engine_sim/api/ask.hpp"
#include "tools/engine_sim/api/faults.hpp"
#include "tools/engine_sim/api/metrics.hpp"
#include "tools/engine_sim/api/text.hpp"

using namespace signalbox;
using namespace signalbox::engine_sim;

namespace {
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// The data of every event of a stream, each of which must be JSON or "[DONE]".
std::vector<std::string> data_of(std::string_view stream) {
  std::vector<std::string> out;
  while (!stream.empty()) {
    const auto end = stream.find("\n\n");
    BOOST_REQUIRE(end != stream.npos);
    std::string_view event = stream.substr(0, end);
    stream.remove_prefix(end + 2);
    event.remove_prefix(event.find("data: ") + 6);
    out.emplace_back(event);
    simdjson::dom::parser parser;
    BOOST_TEST((event == "[DONE]" || parser.parse(out.back()).error() == simdjson::SUCCESS), out.back());
  }
  return out;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(ask)

BOOST_AUTO_TEST_CASE(prompts_are_rendered) {
  const struct {
    const char* name;
    Endpoint endpoint;
    const char* body;
    const char* prompt;
  } rows[] = {
      {"chat", Endpoint::chat, R"({"model":"m","messages":[{"role":"user","content":"hi"}]})",
       "user\nhi\nassistant\n"},
      {"parts", Endpoint::chat,
       R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]})",
       "user\nab\nassistant\n"},
      {"null content", Endpoint::chat, R"({"model":"m","messages":[{"role":"assistant","content":null}]})",
       "assistant\n\nassistant\n"},
      {"completion", Endpoint::completion, R"({"model":"m","prompt":"once"})", "once"},
      {"tokens", Endpoint::completion, R"({"model":"m","prompt":[1651799137, 1651799137]})", "attbattb"},
      {"response", Endpoint::response, R"({"model":"m","input":"hi"})", "user\nhi\nassistant\n"},
      {"response messages", Endpoint::response, R"({"model":"m","input":[{"role":"user","content":"hi"}]})",
       "user\nhi\nassistant\n"},
  };
  for (const auto& row : rows) {
    const auto read = read_ask(row.endpoint, row.body);
    BOOST_REQUIRE_MESSAGE(read.has_value(), row.name << (read ? "" : read.error().text()));
    BOOST_TEST(read->prompt == row.prompt, row.name << ": " << read->prompt);
  }
}

BOOST_AUTO_TEST_CASE(settings_are_read) {
  const auto read = read_ask(Endpoint::chat,
                             R"({"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":null,
          "max_completion_tokens":7,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"cache_salt":"s"})");
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((read->max_tokens == 7u && read->stream && read->include_usage && read->ignore_eos));
  BOOST_TEST(read->cache_salt == "s");
}

BOOST_AUTO_TEST_CASE(faulty_requests_name_the_parameter) {
  const struct {
    const char* name;
    Endpoint endpoint;
    const char* body;
    const char* param;
  } rows[] = {
      {"no JSON", Endpoint::chat, "{", ""},
      {"an array", Endpoint::chat, "[]", ""},
      {"no model", Endpoint::chat, R"({"messages":[{"role":"user","content":"x"}]})", "model"},
      {"no messages", Endpoint::chat, R"({"model":"m"})", "messages"},
      {"no message", Endpoint::chat, R"({"model":"m","messages":[]})", "messages"},
      {"no role", Endpoint::chat, R"({"model":"m","messages":[{"content":"x"}]})", "messages.role"},
      {"no prompt", Endpoint::completion, R"({"model":"m"})", "prompt"},
      {"two prompts", Endpoint::completion, R"({"model":"m","prompt":["a","b"]})", "prompt"},
      {"no input", Endpoint::embedding, R"({"model":"m","input":[]})", "input"},
      {"zero tokens", Endpoint::completion, R"({"model":"m","prompt":"a","max_tokens":0})", "max_tokens"},
      {"two choices", Endpoint::completion, R"({"model":"m","prompt":"a","n":2})", "n"},
  };
  for (const auto& row : rows) {
    const auto read = read_ask(row.endpoint, row.body);
    BOOST_REQUIRE_MESSAGE(!read.has_value(), row.name);
    BOOST_TEST(read.error().where == row.param, row.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(a_conversation_that_quotes_the_answer_shares_its_blocks) {
  const std::string prompt =
      read_ask(Endpoint::chat, R"({"model":"m","messages":[{"role":"user","content":"hello"}]})")->prompt;
  std::string answer;
  for (std::uint32_t n = 0; n < 100; ++n) answer += answer_token(42, n);
  BOOST_TEST(answer.size() == 400u);
  const auto next = read_ask(
      Endpoint::chat,
      R"({"model":"m","messages":[{"role":"user","content":"hello"},{"role":"assistant","content":")" +
          answer + R"("},{"role":"user","content":"go on"}]})");
  const auto first = hash_blocks(prompt + answer, 16, 1), second = hash_blocks(next->prompt, 16, 1);
  BOOST_REQUIRE(first.size() >= 6u);
  BOOST_TEST(std::equal(first.begin(), first.end(), second.begin()));
  BOOST_TEST(hash_blocks(prompt + answer, 16, 2).front() != first.front());
  BOOST_TEST(count_tokens("12345") == 2u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(answer)

BOOST_AUTO_TEST_CASE(streams_have_openai_s_events) {
  const Usage usage{.prompt_tokens = 5, .cached_tokens = 4, .completion_tokens = 2};
  AnswerHead head{.endpoint = Endpoint::chat, .id = "chatcmpl-1", .model = "m\"x", .created_s = 12};
  const auto chat =
      data_of(stream_start(head) + stream_text(head, "the ") + stream_end(head, "the ", "stop", usage, true));
  BOOST_REQUIRE_EQUAL(chat.size(), 5u);
  BOOST_TEST(contains(chat[0], R"("delta":{"role":"assistant","content":""})"));
  BOOST_TEST(contains(chat[1], R"("delta":{"content":"the "})"));
  BOOST_TEST(contains(chat[2], R"("finish_reason":"stop")"));
  BOOST_TEST(contains(
      chat[3],
      R"("choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":4}})"));
  BOOST_TEST(chat[4] == "[DONE]");
  BOOST_TEST(data_of(stream_end(head, "", "stop", usage, false)).size() == 2u);

  head.endpoint = Endpoint::completion;
  BOOST_TEST(stream_start(head).empty());
  BOOST_TEST(data_of(stream_text(head, "a") + stream_end(head, "a", "length", usage, true)).size() == 4u);
  head.endpoint = Endpoint::response;
  const auto response =
      data_of(stream_start(head) + stream_text(head, "a") + stream_end(head, "a", "length", usage, false));
  BOOST_REQUIRE_EQUAL(response.size(), 3u);
  BOOST_TEST(contains(response[2], R"("type":"response.incomplete")"));
}

BOOST_AUTO_TEST_CASE(whole_answers_are_json) {
  const Usage usage{.prompt_tokens = 5, .cached_tokens = 0, .completion_tokens = 2};
  for (const Endpoint endpoint : {Endpoint::chat, Endpoint::completion, Endpoint::response}) {
    const std::string text =
        whole_answer({.endpoint = endpoint, .id = "x", .model = "m"}, "the \n", "length", usage);
    simdjson::dom::parser parser;
    BOOST_TEST((parser.parse(text).error() == simdjson::SUCCESS), text);
  }
  const auto ask = read_ask(Endpoint::embedding, R"({"model":"m","input":["a","b"],"dimensions":3})");
  const std::string text = embeddings_answer(*ask, 2, 1);
  simdjson::dom::parser parser;
  simdjson::dom::element parsed;
  BOOST_REQUIRE((parser.parse(text).get(parsed) == simdjson::SUCCESS));
  double norm = 0;
  const simdjson::dom::array vector = parsed.at_pointer("/data/1/embedding");
  for (const simdjson::dom::element x : vector) norm += double(x) * double(x);
  BOOST_TEST(norm == 1.0, boost::test_tools::tolerance(1e-5));
  Ask packed = *ask;
  packed.base64 = true;
  BOOST_TEST((parser.parse(embeddings_answer(packed, 2, 1)).get(parsed) == simdjson::SUCCESS));
  BOOST_TEST(parsed.at_pointer("/data/0/embedding").get_string().value().size() == 16u);  // 12 bytes
}

BOOST_AUTO_TEST_CASE(metrics_count_what_happened) {
  EngineOptions options;
  Engine engine(options, 1);
  engine.submit({.id = 1, .prompt_tokens = 32, .output_tokens = 3, .max_output_tokens = 3}, instant_at(0s));
  std::vector<Event> events;
  while (engine.next_wake() != end_of_time) engine.on_wake(engine.next_wake(), events);
  const std::string text = metrics_text(engine, "m", 1.5);
  for (const char* line : {
           "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} "
           "0\n",
           "vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 32\n",
           "vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 3\n",
           "vllm:request_success_total{engine=\"0\",model_name=\"m\",finished_reason=\"length\"} 1\n",
           "vllm:inter_token_latency_seconds_count{engine=\"0\",model_name=\"m\"} 2\n",
           "vllm:time_to_first_token_seconds_bucket{engine=\"0\",model_name=\"m\",le=\"+Inf\"} 1\n",
           "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"16384\"} 1\n",
       })
    BOOST_TEST(contains(text, line), line);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(faults_change_by_name_and_only_as_a_whole) {
  InjectedFaults f;
  BOOST_TEST(
      change_faults(f, R"({"slow":3,"error_ratio":0.25,"die_mid_stream":true,"status":503,"freeze":true})")
          .has_value());
  BOOST_TEST((f.slow == 3 && f.error_ratio == 0.25 && f.die_mid_stream == 1 && f.status == 503 && f.freeze));
  BOOST_TEST((f.machine().slowness == 3 && f.machine().frozen));
  for (const char* bad :
       {"[]", R"({"slow":0})", R"({"slow":2,"eror_ratio":1})", R"({"refuse":1})", R"({"status":200})"}) {
    BOOST_TEST(!change_faults(f, bad).has_value(), bad);
    BOOST_TEST(f.slow == 3);
  }
  BOOST_TEST(change_faults(f, R"({"reset":true,"hang":true})").has_value());
  BOOST_TEST(
      faults_json(f) ==
      R"({"refuse":false,"hang":true,"freeze":false,"slow":1,"error_ratio":0,"die_mid_stream":0,"kv_lost":false,"kv_strange":false,"status":0})");
}
