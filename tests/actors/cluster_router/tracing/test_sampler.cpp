#include <boost/test/unit_test.hpp>

#include <set>

#include "actors/cluster_router/tracing/context.hpp"
#include "actors/cluster_router/tracing/sampler.hpp"

using namespace signalbox;
using namespace signalbox::tracing;

namespace {

constexpr std::string_view trace_id = "0af7651916cd43dd8448eb211c80319c", span_id = "b7ad6b7169203331";

http::Fields with_parent(std::string_view value) { return {{"traceparent", value}}; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_traceparent_is_read_or_it_is_none) {
  const auto parent = traceparent_of(with_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  BOOST_REQUIRE(parent.has_value());
  BOOST_TEST(parent->trace == trace_id);
  BOOST_TEST(parent->span == span_id);
  BOOST_TEST(parent->sampled());
  BOOST_TEST(
      !traceparent_of(with_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02"))->sampled());
  BOOST_TEST(
      traceparent_of(with_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0b"))->sampled());
  for (const std::string_view bad : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
                                     "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                     "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                     "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                     "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    BOOST_TEST(!traceparent_of(with_parent(bad)).has_value(), bad);
}

BOOST_AUTO_TEST_CASE(a_clients_word_decides_whether_its_trace_is_recorded) {
  Sampler none({true, 0, 1e5}), all({true, 1, 1e5});
  const auto kept =
      none.begin(with_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), {1, 1}, Instant{});
  BOOST_REQUIRE(kept);
  BOOST_TEST(kept->id == trace_id);
  BOOST_TEST(kept->parent == span_id);
  BOOST_TEST(
      !all.begin(with_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"), {1, 1}, Instant{}));
  BOOST_TEST(!none.begin({}, {1, 1}, Instant{}));
  BOOST_TEST(
      !Sampler(SamplerOptions{})
           .begin(with_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), {1, 1}, Instant{}));
}

BOOST_AUTO_TEST_CASE(a_share_of_the_others_begins_a_trace_of_its_own) {
  Sampler sampler({true, 0.01, 1e9});
  std::set<std::string> ids;
  constexpr std::uint64_t requests = 100'000;
  for (std::uint64_t count = 0; count < requests; ++count)
    if (const auto trace = sampler.begin({}, {77, count}, Instant{})) {
      BOOST_TEST_REQUIRE(trace->parent.empty());
      BOOST_TEST_REQUIRE(traceparent_of(with_parent("00-" + trace->id + "-b7ad6b7169203331-01")).has_value());
      ids.insert(trace->id);
    }
  // Four standard deviations of a binomial count either way.
  BOOST_TEST(ids.size() > 874u);
  BOOST_TEST(ids.size() < 1126u);
}

BOOST_AUTO_TEST_CASE(clients_cannot_ask_for_more_traces_than_the_limit) {
  Sampler sampler({true, 0, 10});
  const http::Fields recorded = with_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const auto begun = [&](Instant from, int requests) {
    int out = 0;
    for (int i = 0; i < requests; ++i)
      out += sampler.begin(recorded, {1, 1}, from + i * 1ms) != nullptr ? 1 : 0;
    return out;
  };
  const Instant start = instant_at(100s);
  BOOST_TEST(begun(start, 10) == 10);
  BOOST_TEST(begun(start + 10ms, 1000) <= 11);
  BOOST_TEST(sampler.limited() >= 989u);
  BOOST_TEST(begun(start + 5s, 20) == 10);
}

BOOST_AUTO_TEST_CASE(spans_differ_between_attempts_and_decisions) {
  std::set<std::uint64_t> spans;
  for (std::uint64_t count = 0; count < 100; ++count)
    for (std::uint32_t attempt = 0; attempt < 4; ++attempt) spans.insert(span_of({5, count}, attempt));
  BOOST_TEST(spans.size() == 400u);
  BOOST_TEST(!spans.contains(0));
}
