#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/http/head.hpp"

using namespace signalbox::http;

namespace {

struct Row {
  const char* name;
  std::string bytes;
  Fault fault;
};

std::string request(std::string_view fields) {
  return "POST /v1/x HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n";
}

Fault fault_of(const std::string& bytes) {
  RequestHead head;
  return parse_request(bytes, 0, {}, head).fault;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_request_is_read) {
  const std::string bytes =
      "POST /v1/x?a=b HTTP/1.1\r\nHost: h:1\r\nContent-Length: 12\r\nX-Empty:\r\nX-Padded: \t v w "
      "\t\r\n\r\nbody";
  RequestHead head;
  const Parsed parsed = parse_request(bytes, 0, {}, head);
  BOOST_TEST(parsed.consumed == bytes.size() - 4);
  BOOST_TEST(head.method == "POST");
  BOOST_TEST(head.target == "/v1/x?a=b");
  BOOST_TEST(head.path() == "/v1/x");
  BOOST_TEST((head.framing == Framing::length));
  BOOST_TEST(head.length == 12u);
  BOOST_TEST(head.keep_alive);
  BOOST_TEST(*find(head.fields, "x-padded") == "v w");
  BOOST_TEST(*find(head.fields, "X-EMPTY") == "");
  BOOST_TEST(!find(head.fields, "x-none"));
}

BOOST_AUTO_TEST_CASE(a_head_that_is_cut_anywhere_needs_more_and_then_reads_the_same) {
  const std::string bytes = "\r\nGET /a HTTP/1.1\r\nHost: x\r\nConnection: close, te\r\n\r\n";
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    RequestHead head;
    const Parsed part = parse_request(std::string_view(bytes).substr(0, cut), 0, {}, head);
    BOOST_TEST(part.consumed == 0u);
    BOOST_TEST((part.fault == Fault::none), cut);
    const Parsed whole = parse_request(bytes, cut, {}, head);
    BOOST_TEST(whole.consumed == bytes.size(), cut);
    BOOST_TEST(!head.keep_alive);
  }
}

BOOST_AUTO_TEST_CASE(ambiguous_and_malformed_requests_are_refused) {
  const std::vector<Row> rows = {
      {"length and chunked", request("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
       Fault::conflicting_framing},
      {"chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Fault::conflicting_framing},
      {"two lengths", request("Content-Length: 3\r\nContent-Length: 3\r\n"), Fault::bad_length},
      {"list of lengths", request("Content-Length: 3, 3\r\n"), Fault::bad_length},
      {"signed length", request("Content-Length: +3\r\n"), Fault::bad_length},
      {"negative length", request("Content-Length: -3\r\n"), Fault::bad_length},
      {"hex length", request("Content-Length: 0x3\r\n"), Fault::bad_length},
      {"empty length", request("Content-Length:\r\n"), Fault::bad_length},
      {"endless length", request("Content-Length: 9999999999999999999\r\n"), Fault::bad_length},
      {"two codings", request("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
       Fault::unknown_coding},
      {"gzip coding", request("Transfer-Encoding: gzip, chunked\r\n"), Fault::unknown_coding},
      {"chunked with a space before the colon", request("Transfer-Encoding : chunked\r\n"), Fault::bad_field},
      {"chunked with a vertical tab", request("Transfer-Encoding:\vchunked\r\n"), Fault::bad_field},
      {"folded field", request("X-A: b\r\n c\r\n"), Fault::folded_field},
      {"bare newline in a field", request("X-A: b\nX-B: c\r\n"), Fault::bare_newline},
      {"bare newline at the end", "GET / HTTP/1.1\r\nHost: x\r\n\n", Fault::bare_newline},
      {"only bare newlines", "GET / HTTP/1.1\nHost: x\n\n", Fault::bare_newline},
      {"bare carriage return", request("X-A: b\rX-B: c\r\n"), Fault::bad_field},
      {"nul in a value", request(std::string_view("X-A: b\0c\r\n", 10)), Fault::bad_field},
      {"field without colon", request("X-A\r\n"), Fault::bad_field},
      {"field without name", request(": b\r\n"), Fault::bad_field},
      {"name with a space", request("X A: b\r\n"), Fault::bad_field},
      {"no host", "GET / HTTP/1.1\r\n\r\n", Fault::bad_host},
      {"two hosts", request("Host: y\r\n"), Fault::bad_host},
      {"other version", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", Fault::bad_version},
      {"no version", "GET /\r\nHost: x\r\n\r\n", Fault::bad_start_line},
      {"space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", Fault::bad_target},
      {"relative target", "GET a HTTP/1.1\r\nHost: x\r\n\r\n", Fault::bad_target},
      {"star is for OPTIONS", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", Fault::bad_target},
      {"method with a bracket", "G(T / HTTP/1.1\r\nHost: x\r\n\r\n", Fault::bad_start_line},
      {"other expectation", request("Expect: 200-ok\r\n"), Fault::unknown_expectation},
      {"too large", request("X-A: " + std::string(40000, 'a') + "\r\n"), Fault::head_too_large},
      {"too large before its end", "GET / HTTP/1.1\r\nX-A: " + std::string(40000, 'a'),
       Fault::head_too_large},
      {"first line without end", "GET /" + std::string(40000, 'a'), Fault::target_too_long},
      {"first line too long", "GET /" + std::string(20000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n",
       Fault::target_too_long},
      {"host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Fault::bad_host},
      {"host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Fault::bad_host},
      {"host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", Fault::bad_host},
  };
  for (const Row& row : rows) BOOST_TEST((fault_of(row.bytes) == row.fault), row.name);
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  BOOST_TEST((fault_of(request(many)) == Fault::too_many_fields));
}

BOOST_AUTO_TEST_CASE(absolute_targets_are_reduced_to_their_path) {
  struct Form {
    const char* target;
    const char* path;
  };
  for (const Form form :
       {Form{"http://h:80/a?b", "/a?b"}, Form{"HTTPS://h", "/"}, Form{"/plain", "/plain"}}) {
    const std::string bytes = "GET " + std::string(form.target) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    RequestHead head;
    BOOST_TEST(parse_request(bytes, 0, {}, head).consumed == bytes.size());
    BOOST_TEST(head.target == form.path);
  }
}

BOOST_AUTO_TEST_CASE(views_follow_their_bytes) {
  const std::string first = "GET http://h HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n";
  RequestHead head;
  parse_request(first, 0, {}, head);
  const std::string second = first;
  rebase(head, first.data(), second.data());
  BOOST_TEST(head.target == "/");
  BOOST_TEST(static_cast<const void*>(head.fields[1].value.data()) >=
             static_cast<const void*>(second.data()));
  BOOST_TEST(head.fields[1].value == "b");
}

BOOST_AUTO_TEST_CASE(persistence_follows_version_and_connection) {
  struct Form {
    const char* bytes;
    bool keep;
  };
  for (const Form form : {Form{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
                          Form{"GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n", false},
                          Form{"GET / HTTP/1.0\r\n\r\n", false},
                          Form{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true}}) {
    RequestHead head;
    BOOST_TEST(parse_request(form.bytes, 0, {}, head).consumed > 0u);
    BOOST_TEST(head.keep_alive == form.keep, form.bytes);
  }
}

BOOST_AUTO_TEST_CASE(answers_are_framed_by_their_rules) {
  struct Form {
    const char* bytes;
    bool to_head;
    Framing framing;
  };
  for (const Form form :
       {Form{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, Framing::length},
        Form{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, Framing::none},
        Form{"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", false, Framing::chunked},
        Form{"HTTP/1.1 200 \r\n\r\n", false, Framing::until_close},
        Form{"HTTP/1.1 204 No Content\r\n\r\n", false, Framing::none},
        Form{"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, Framing::none}}) {
    ResponseHead head;
    BOOST_TEST(parse_response(form.bytes, 0, {}, form.to_head, head).consumed > 0u, form.bytes);
    BOOST_TEST((head.framing == form.framing), form.bytes);
  }
  for (const char* bad :
       {"HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 99 OK\r\n\r\n", "HTTP/1.1200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\nA: b\n\n"}) {
    ResponseHead head;
    BOOST_TEST((parse_response(bad, 0, {}, false, head).fault != Fault::none), bad);
  }
}

BOOST_AUTO_TEST_CASE(every_fault_has_a_status_a_name_and_a_sentence) {
  for (int i = 1; i <= static_cast<int>(Fault::body_too_large); ++i) {
    const FaultText text = describe(static_cast<Fault>(i));
    BOOST_TEST((text.status >= 400 && text.status < 600));
    BOOST_TEST(text.name != "unknown");
    BOOST_TEST(text.sentence.size() > 10u);
  }
}
