#include <simdjson.h>

#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/http/errors.hpp"
#include "actors/cluster_router/http/request_shape.hpp"

using namespace signalbox;
using namespace signalbox::http;

namespace {

Result<RequestShape> read(std::string body, Endpoint endpoint = Endpoint::chat) {
  static ShapeReader reader;
  static std::string kept;  // the shape's views point into it
  kept = std::move(body);
  kept.reserve(kept.size() + 64);
  return reader.read(kept, endpoint);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_chat_request_is_read) {
  const auto shape = read(
      R"({"messages":[{"role":"user","content":"a ] \" b"}],"model":"org/m:7b","stream":true,"max_tokens":16,"n":2,
    "stream_options":{"include_usage":true},"temperature":0.5})");
  BOOST_REQUIRE(shape.has_value());
  BOOST_TEST(shape->model.str() == "org/m:7b");
  BOOST_TEST(shape->stream);
  BOOST_TEST(shape->wants_usage);
  BOOST_TEST(*shape->max_new_tokens == 16u);
  BOOST_TEST(shape->choices == 2u);
  BOOST_TEST(!shape->stateful);
  BOOST_TEST(shape->prompt == R"([{"role":"user","content":"a ] \" b"}])");
}

BOOST_AUTO_TEST_CASE(requests_that_keep_state_are_known) {
  BOOST_TEST(read(R"({"model":"m","store":true})", Endpoint::responses)->stateful);
  BOOST_TEST(read(R"({"model":"m","background":true})", Endpoint::responses)->stateful);
  BOOST_TEST(read(R"({"model":"m","previous_response_id":"r1"})", Endpoint::responses)->previous_response ==
             "r1");
  BOOST_TEST(
      !read(R"({"model":"m","previous_response_id":null,"store":false})", Endpoint::responses)->stateful);
  BOOST_TEST(!read(R"({"model":"m","store":true})", Endpoint::chat)->stateful);
}

BOOST_AUTO_TEST_CASE(bad_requests_say_which_field) {
  struct Row {
    const char* body;
    const char* where;
  };
  for (const Row row :
       {Row{"", ""}, Row{"not json", ""}, Row{"[]", ""}, Row{R"({"model":"m")", ""},
        Row{R"({"model":"m",})", ""}, Row{R"({"model":"m"} x)", ""}, Row{R"({"messages":[})", ""},
        Row{"{}", "model"}, Row{R"({"model":7})", "model"}, Row{R"({"model":""})", "model"},
        Row{R"({"model":"a","model":"b"})", "model"}, Row{R"({"model":"m","max_tokens":-1})", "max_tokens"},
        Row{R"({"model":"m","n":"two"})", "n"}}) {
    const auto shape = read(row.body);
    BOOST_TEST(!shape.has_value(), row.body);
    if (!shape) BOOST_TEST(shape.error().where == row.where, row.body);
  }
}

BOOST_AUTO_TEST_CASE(a_request_cut_anywhere_is_refused) {
  const std::string body = R"({"model":"m","messages":[{"content":"x"}],"stream":true})";
  for (std::size_t cut = 0; cut < body.size(); ++cut) BOOST_TEST(!read(body.substr(0, cut)).has_value(), cut);
}

BOOST_AUTO_TEST_CASE(paths_name_their_endpoint) {
  BOOST_TEST((endpoint_of("/v1/chat/completions") == Endpoint::chat));
  BOOST_TEST((endpoint_of("/v1/score") == Endpoint::other));
  BOOST_TEST(to_string(endpoint_of("/v1/embeddings")) == "embeddings");
}

BOOST_AUTO_TEST_CASE(errors_have_the_shape_that_clients_read) {
  BOOST_TEST(
      openai_error(404, "model_not_found", "no \"x\"", "model") ==
      R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"model","code":"model_not_found"}})");
  BOOST_TEST(openai_error_event(502, "engine_failed", "gone") ==
             "data: "
             "{\"error\":{\"message\":\"gone\",\"type\":\"server_error\",\"param\":null,\"code\":\"engine_"
             "failed\"}}\n\n");
  BOOST_TEST(json_string("a\n\x01\xff\xc3\xa9") == "\"a\\u000a\\u0001\\ufffd\xc3\xa9\"");
}

BOOST_AUTO_TEST_CASE(errors_of_engines_are_brought_into_that_shape) {
  struct Row {
    const char* engine;
    const char* body;
    const char* expected;
  };
  for (
      const Row row :
      {Row{"llama.cpp",
           R"({"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":8}})",
           R"({"error":{"message":"too long","type":"exceed_context_size_error","param":null,"code":null}})"},
       Row{"vLLM, old",
           R"({"object":"error","message":"bad","type":"BadRequestError","param":"n","code":400})",
           R"({"error":{"message":"bad","type":"BadRequestError","param":"n","code":null}})"},
       Row{"FastAPI", R"({"detail":"Not here"})",
           R"({"error":{"message":"Not here","type":"invalid_request_error","param":null,"code":null}})"},
       Row{"FastAPI list", R"({"detail":[{"loc":["n"]}]})",
           R"({"error":{"message":"[{\"loc\":[\"n\"]}]","type":"invalid_request_error","param":null,"code":null}})"},
       Row{"plain error", R"({"error":"boom"})",
           R"({"error":{"message":"boom","type":"invalid_request_error","param":null,"code":null}})"},
       Row{"OpenAI", R"({"error":{"message":"m","type":"t","param":"p","code":"c"}})",
           R"({"error":{"message":"m","type":"t","param":"p","code":"c"}})"},
       Row{"HTML", "<html>",
           R"({"error":{"message":"the engine answered 400 Bad Request","type":"invalid_request_error","param":null,"code":null}})"}})
    BOOST_TEST(normalise_error(400, row.body) == row.expected, row.engine);
}
