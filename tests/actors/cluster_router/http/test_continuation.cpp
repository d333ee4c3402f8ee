// What of a request and of its stream can be continued, and how.
#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/http/continuation.hpp"

using namespace signalbox::http;

BOOST_AUTO_TEST_CASE(only_requests_for_one_stream_of_plain_text_can_be_continued) {
  struct Row {
    const char* body;
    Endpoint endpoint;
    bool can;
  };
  const auto chat = Endpoint::chat, text = Endpoint::completions;
  for (
      const Row& row : {
          Row{R"({"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]})", chat, true},
          Row{R"({"model":"m","stream":true,"messages":[{"role":"user","content":"a"}],"n":1,"temperature":0,"seed":3,"stop":["x"]})",
              chat, true},
          Row{R"({"model":"m","stream":true,"messages":[{"role":"user","content":"a"}],"stream_options":{"include_usage":true}})",
              chat, true},
          Row{R"({"model":"m","stream":true,"messages":[{"role":"user","content":"a"}],"stream_options":{"continuous_usage_stats":true}})",
              chat, false},
          Row{R"({"model":"m","stream":false,"messages":[{"role":"user","content":"a"}]})", chat, false},
          Row{R"({"model":"m","messages":[{"role":"user","content":"a"}]})", chat, false},
          Row{R"({"model":"m","stream":true,"messages":[]})", chat, false},
          Row{R"({"model":"m","stream":true,"messages":[{"role":"assistant","content":"a"}]})", chat, false},
          Row{R"({"model":"m","stream":true,"messages":[{"role":"user","content":"a"}],"tools":[]})", chat,
              false},
          Row{R"({"model":"m","stream":true,"messages":[{"role":"user","content":"a"}],"n":2})", chat, false},
          Row{R"({"model":"m","stream":true,"prompt":"a"})", text, true},
          Row{R"({"model":"m","stream":true,"prompt":["a","b"]})", text, false},
          Row{R"({"model":"m","stream":true,"prompt":[1,2]})", text, false},
          Row{R"({"model":"m","stream":true,"prompt":"a","echo":true})", text, false},
          Row{R"({"model":"m","stream":true,"prompt":"a","suffix":"b"})", text, false},
          Row{R"({"model":"m","stream":true,"input":"a"})", Endpoint::responses, false},
          Row{"not json", chat, false},
      })
    BOOST_TEST(can_be_continued(row.body, row.endpoint) == row.can, row.body);
}

BOOST_AUTO_TEST_CASE(the_rest_is_asked_for_with_the_text_so_far) {
  BOOST_TEST(
      *request_for_rest(
          R"({ "model": "m", "max_completion_tokens": 20, "messages": [ {"role":"user","content":"a\"b\u00e9"} ] })",
          Endpoint::chat, "say \"hi\"\n", 7) ==
      R"({"model":"m","max_completion_tokens":13,"messages":[{"role":"user","content":"a\"bé"},{"role":"assistant","content":"say \"hi\"\u000a"}],"add_generation_prompt":false,"continue_final_message":true})");
  BOOST_TEST(*request_for_rest(R"({"prompt":"a\n","max_tokens":2,"temperature":0.7,"stream":true})",
                               Endpoint::completions, "b", 1) ==
             R"({"prompt":"a\u000ab","max_tokens":1,"temperature":0.7,"stream":true})");
  BOOST_TEST(*request_for_rest(R"({"prompt":"a","max_tokens":null})", Endpoint::completions, "b", 1) ==
             R"({"prompt":"ab","max_tokens":null})");
  BOOST_TEST(
      !request_for_rest(R"({"prompt":"a","max_tokens":5})", Endpoint::completions, "b", 5).has_value());
}

BOOST_AUTO_TEST_CASE(pieces_are_text_an_end_or_a_reason_not_to_go_on) {
  const auto read = [](const char* data) { return read_piece(data, Endpoint::chat); };
  BOOST_TEST(
      read(
          R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00e9"},"finish_reason":null,"logprobs":null}]})")
          .text == "aé");
  BOOST_TEST(read(R"({"choices":[{"index":0,"delta":{"content":null,"tool_calls":null}}]})").readable);
  BOOST_TEST(read(R"({"choices":[],"usage":{}})").readable);
  BOOST_TEST(read(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})").ends);
  BOOST_TEST(read("[DONE]").ends);
  for (const char* strange :
       {R"({"choices":[{"delta":{"tool_calls":[]}}]})", R"({"choices":[{"delta":{"reasoning":"x"}}]})",
        R"({"choices":[{"delta":{"content":"a"},"logprobs":{"content":[]}}]})", R"({"choices":[{},{}]})",
        R"({"error":{}})", "nonsense", R"({"choices":[{"delta":{"content":["a"]}}]})"})
    BOOST_TEST(!read(strange).readable, strange);
  BOOST_TEST(read_piece(R"({"choices":[{"text":"x","index":0}]})", Endpoint::completions).text == "x");
}

BOOST_AUTO_TEST_CASE(events_of_the_second_engine_become_the_first_ones) {
  const StreamIdentity first = identity_of(R"({"id": "chat-\"1", "created": 17,"choices":[]})");
  BOOST_TEST(first.id == R"("chat-\"1")");
  BOOST_TEST(first.created == "17");
  const auto fit = [&](const char* data) { return as_continued(data, Endpoint::chat, first, 5); };
  BOOST_TEST(fit(R"({"id":"b","created":99,"choices":[{"delta":{"content":"x"}}]})") ==
             R"({"id":"chat-\"1","created":17,"choices":[{"delta":{"content":"x"}}]})");
  BOOST_TEST(
      fit(R"({"id":"b","created":99,"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":4,"total_tokens":34}})") ==
      R"({"id":"chat-\"1","created":17,"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":9,"total_tokens":34}})");
  BOOST_TEST(fit(R"({"id":"b","choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]})")
                 .empty());
  BOOST_TEST(fit("[DONE]") == "[DONE]");
  BOOST_TEST(fit(R"({"id":"b","choices":[{"delta":{"content":"x"}}],"usage":null})") ==
             R"({"id":"chat-\"1","choices":[{"delta":{"content":"x"}}],"usage":null})");
}
