#include <boost/test/unit_test.hpp>

#include "actors/cluster_router/http/chunked.hpp"
#include "actors/cluster_router/http/sse.hpp"
#include "actors/cluster_router/http/usage.hpp"
#include "messages/base/rng.hpp"

using namespace signalbox;
using namespace signalbox::http;

namespace {

using State = ChunkedDecoder::State;

struct Decoded {
  std::string body;
  State state = State::more;
  std::size_t consumed = 0;
};

/// Decodes with the input cut into these pieces.
Decoded decode(std::string_view bytes, std::size_t piece) {
  ChunkedDecoder decoder;
  Decoded out;
  for (std::size_t at = 0; at < bytes.size() && out.state == State::more; at += piece) {
    std::string_view part = bytes.substr(at, piece);
    for (;;) {
      const auto step = decoder.next(part);
      out.body += step.data;
      out.consumed += step.consumed;
      out.state = step.state;
      part.remove_prefix(step.consumed);
      if (step.state != State::more || part.empty()) break;
    }
  }
  return out;
}

std::vector<std::string> events_of(std::string_view bytes, std::size_t piece) {
  SseReader reader;
  std::vector<std::string> out;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    reader.read(bytes.substr(at, piece), [&](std::string_view data) { out.emplace_back(data); });
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(chunks_decode_alike_at_every_cut) {
  const std::string_view bytes =
      "5\r\nhello\r\nA;ext=\"v\"\r\n0123456789\r\n1 ;x\r\n!\r\n000\r\nTrailer: x\r\nOther: y\r\n\r\nnext";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Decoded out = decode(bytes, piece);
    BOOST_TEST(out.body == "hello0123456789!");
    BOOST_TEST((out.state == State::ended));
    BOOST_TEST(out.consumed == bytes.size() - 4, piece);
  }
}

BOOST_AUTO_TEST_CASE(malformed_chunks_fail_at_every_cut) {
  for (const std::string_view bytes :
       {"\r\nabc", "x\r\n", "3\nabc\r\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabcd\r\n", "0x3\r\nabc\r\n", "-1\r\n",
        "3;a\nb\r\nabc\r\n", "1234567890123\r\n", "3\rabc", "0\r\nA: b\n\r\n", "0\r\n\rx", "3 \r\nabc\r\n",
        "0\r\nrubbish\r\n\r\n", "0\r\nA : b\r\n\r\n", "0\r\nA: b\r\n c\r\n\r\n", " 3\r\nabc\r\n"})
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece)
      BOOST_TEST((decode(bytes, piece).state == State::failed), bytes);
  const std::string endless = "1;" + std::string(10000, 'e');
  BOOST_TEST((decode(endless, 100).state == State::failed));
}

BOOST_AUTO_TEST_CASE(what_is_encoded_decodes) {
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    std::string body, wire;
    for (std::uint64_t n = rng.below(6); n > 0; --n) {
      const std::string piece(1 + rng.below(300), static_cast<char>('a' + rng.below(26)));
      std::array<char, 20> line;
      wire.append(line.data(), write_chunk_head(piece.size(), line)).append(piece).append(chunk_tail);
      body += piece;
    }
    wire += last_chunk;
    const Decoded out = decode(wire, 1 + rng.below(wire.size()));
    BOOST_TEST(out.body == body);
    BOOST_TEST((out.state == State::ended));
  }
}

BOOST_AUTO_TEST_CASE(events_are_found_at_every_cut) {
  const std::string_view bytes =
      ": comment\n\ndata: one\n\ndata:two\r\nid: 7\r\n\r\nevent: x\ndata: three\n\ndata\n\ndata: [DONE]\n\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece)
    BOOST_TEST((events_of(bytes, piece) == std::vector<std::string>{"one", "two", "three", "[DONE]"}), piece);
}

BOOST_AUTO_TEST_CASE(a_boundary_is_after_an_empty_line_only) {
  SseReader reader;
  const auto read = [&](std::string_view bytes) {
    return reader.read(bytes, [](std::string_view) {}), reader.at_boundary();
  };
  BOOST_TEST(reader.at_boundary());
  BOOST_TEST(!read("data: a"));
  BOOST_TEST(!read("\n"));
  BOOST_TEST(read("\n"));
}

BOOST_AUTO_TEST_CASE(an_endless_line_is_counted_and_not_held) {
  SseReader reader;
  int told = 0;
  const std::string piece(100'000, 'x');
  reader.read("data: ", [&](std::string_view) { ++told; });
  for (int i = 0; i < 10; ++i) reader.read(piece, [&](std::string_view) { ++told; });
  BOOST_TEST(!reader.at_boundary());
  reader.read("\n\ndata: y\n\n", [&](std::string_view) { ++told; });
  BOOST_TEST(told == 1);
  BOOST_TEST(reader.events() == 2u);
  BOOST_TEST(reader.at_boundary());
}

BOOST_AUTO_TEST_CASE(usage_is_read_in_each_dialect) {
  struct Row {
    const char* json;
    int prompt, completion, cached;
  };
  for (
      const Row row :
      {Row{R"({"choices":[],"usage":{"prompt_tokens":12,"total_tokens":15,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}})",
           12, 3, 8},
       Row{R"({"usage" : { "input_tokens" : 7, "output_tokens" : 2 } })", 7, 2, -1},
       Row{R"(tail of text","x":"\"usage\":{\"prompt_tokens\":99}"}],"usage":{"prompt_tokens":5,"completion_tokens":1}})",
           5, 1, -1},
       Row{R"({"usage":null})", -1, -1, -1}, Row{R"({"usage":{"prompt_tokens":1)", -1, -1, -1},
       Row{"", -1, -1, -1}}) {
    const auto usage = find_usage(row.json);
    BOOST_TEST(usage.has_value() == (row.prompt >= 0), row.json);
    if (!usage) continue;
    BOOST_TEST(usage->prompt_tokens == static_cast<unsigned>(row.prompt));
    BOOST_TEST(usage->completion_tokens == static_cast<unsigned>(row.completion));
    BOOST_TEST(usage->has_cached == (row.cached >= 0));
  }
}

BOOST_AUTO_TEST_CASE(a_stream_is_watched_to_its_end) {
  struct Row {
    const char* name;
    Endpoint endpoint;
    const char* bytes;
    bool ended;
  };
  for (const Row row :
       {Row{"done marker", Endpoint::chat, "data: {\"usage\":null}\n\ndata: [DONE]\n\n", true},
        Row{"cut", Endpoint::chat, "data: {\"a\":1}\n\n", false},
        Row{"error", Endpoint::completions, "data: {\"error\":{}}\n\n", true},
        Row{"typed", Endpoint::messages, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", true},
        Row{"typed, cut", Endpoint::responses, "data: {\"type\":\"response.created\"}\n\n", false},
        Row{"unknown", Endpoint::other, "data: x\n\n", true}}) {
    AnswerWatch watch(AnswerWatch::Kind::sse, stream_end_of(row.endpoint));
    watch.read(row.bytes);
    BOOST_TEST(watch.said_end() == row.ended, row.name);
  }
}

BOOST_AUTO_TEST_CASE(the_usage_of_a_long_answer_is_found_in_its_tail) {
  AnswerWatch watch(AnswerWatch::Kind::json, StreamEnd::unknown);
  const std::string text = R"({"choices":[{"text":")" + std::string(100'000, 'x') +
                           R"("}],"usage":{"prompt_tokens":5,"completion_tokens":6}})";
  for (std::size_t at = 0; at < text.size(); at += 1000) watch.read(std::string_view(text).substr(at, 1000));
  watch.finish();
  BOOST_REQUIRE(watch.usage().has_value());
  BOOST_TEST(watch.usage()->completion_tokens == 6u);
}
