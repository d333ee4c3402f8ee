#include <boost/test/unit_test.hpp>
#include <limits>

#include "messages/base/rng.hpp"
#include "optimizer/synthetic/synthetic.hpp"
#include "optimizer/wire/wire.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;

namespace {

SolveRequest sample_request() {
  SolveRequest request;
  request.id = 7;
  request.problem = build_problem(synthetic_fleet({3, 9, 2, 0.7, false, 1}))->problem;
  request.problem.reference_per_s[2] = 1.5;
  request.problem.caps = {{{0, 1, 2, 3, 4, 5, 6, 7, 8}, 0.25}, {{0, 0, 0, 1, 1, 1, 2, 2, 2}, 0.5}};
  request.options.target_gap = 1.0;  // a whole number travels as an integer
  request.warm.price.assign(9, 12.5);
  request.warm.flow_per_s.assign(request.problem.pairs.size(), 0.0);
  request.warm.flow_per_s[3] = 0.25;
  return request;
}

Plan sample_plan(const Problem& problem) {
  Plan plan;
  plan.flow_per_s.assign(problem.pairs.size(), 0.0);
  plan.flow_per_s[1] = 2.5;
  plan.shed_per_s.assign(problem.sources.size(), 0.125);
  plan.load.assign(problem.engines.size(), 0.5);
  plan.price.assign(problem.engines.size(), 77.0);
  plan.source_price_s.assign(problem.sources.size(), 3.25);
  plan.certificate = {10.0, 9.5, 0.05};
  plan.terms = {1.0, 2.0, -3.0, 4.5};
  plan.binding = {{Limit::engine_ceiling, 2, 1.5}, {Limit::floor, 1, 200.0}};
  plan.sweeps = 5, plan.dual_iterations = 60, plan.stop = Stop::certified;
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_request_arrives_as_it_was_sent) {
  const SolveRequest sent = sample_request();
  const auto got = decode_request(encode(sent));
  BOOST_REQUIRE_MESSAGE(got.has_value(), (got ? std::string() : got.error().text()));
  BOOST_TEST(got->id == 7u);
  BOOST_TEST(got->options.target_gap == 1.0);
  BOOST_TEST(got->problem.pairs.size() == sent.problem.pairs.size());
  for (std::size_t i = 0; i < sent.problem.pairs.size(); ++i) {
    BOOST_TEST(got->problem.pairs[i].cost_s == sent.problem.pairs[i].cost_s);
    BOOST_TEST(got->problem.pairs[i].work_s == sent.problem.pairs[i].work_s);
    BOOST_TEST((got->problem.pairs[i].engine == sent.problem.pairs[i].engine));
  }
  for (std::size_t s = 0; s < sent.problem.sources.size(); ++s) {
    BOOST_TEST(got->problem.sources[s].first_pair == sent.problem.sources[s].first_pair);
    BOOST_TEST(got->problem.sources[s].demand_per_s == sent.problem.sources[s].demand_per_s);
  }
  BOOST_TEST(got->problem.reference_per_s == sent.problem.reference_per_s);
  BOOST_REQUIRE(got->problem.caps.size() == 2u);
  for (std::size_t c = 0; c < 2; ++c) {
    BOOST_TEST(got->problem.caps[c].group == sent.problem.caps[c].group);
    BOOST_TEST(got->problem.caps[c].most == sent.problem.caps[c].most);
  }
  BOOST_TEST(got->warm.price == sent.warm.price);
  BOOST_TEST(got->warm.flow_per_s == sent.warm.flow_per_s);
}

BOOST_AUTO_TEST_CASE(a_plan_and_a_refusal_arrive_as_they_were_sent) {
  const Problem problem = sample_request().problem;
  const Plan plan = sample_plan(problem);
  const auto got = decode_reply(encode(SolveReply{9, plan}), problem);
  BOOST_REQUIRE_MESSAGE((got.has_value() && got->plan.has_value()),
                        (got ? std::string() : got.error().text()));
  BOOST_TEST(got->id == 9u);
  BOOST_TEST(got->plan->flow_per_s == plan.flow_per_s);
  BOOST_TEST(got->plan->terms == plan.terms);
  BOOST_TEST(got->plan->certificate.relative_gap == 0.05);
  BOOST_TEST(got->plan->binding.size() == 2u);
  BOOST_TEST((got->plan->sweeps == 5u && got->plan->dual_iterations == 60u));
  const auto refusal = decode_reply(encode(SolveReply{9, invalid("no", "here")}), problem);
  BOOST_REQUIRE(refusal.has_value());
  BOOST_TEST(refusal->plan.error().text() == "here: no");
}

BOOST_AUTO_TEST_CASE(a_plan_that_lies_is_refused) {
  const Problem problem = sample_request().problem;
  const auto refused = [&](const char* name, auto spoil) {
    Plan plan = sample_plan(problem);
    spoil(plan);
    BOOST_TEST(!decode_reply(encode(SolveReply{9, plan}), problem).has_value(), name);
  };
  refused("nan", [](Plan& p) { p.price[0] = std::numeric_limits<double>::quiet_NaN(); });
  refused("infinite objective",
          [](Plan& p) { p.certificate.objective = std::numeric_limits<double>::infinity(); });
  refused("negative flow", [](Plan& p) { p.flow_per_s[0] = -1.0; });
  refused("too few engines", [](Plan& p) { p.load.pop_back(); });
  refused("too many pairs", [](Plan& p) { p.flow_per_s.push_back(1.0); });
  refused("a limit on no engine", [](Plan& p) { p.binding[0].row = 1000; });
}

BOOST_AUTO_TEST_CASE(mutilated_bytes_are_refused_or_sound_and_never_kill) {
  Rng rng(3);
  const auto good = encode(sample_request());
  for (int i = 0; i < 20000; ++i) {
    auto bytes = good;
    for (std::uint64_t k = 1 + rng.below(4); k > 0; --k)
      bytes[rng.below(rng.chance(0.5) ? 64 : bytes.size())] = static_cast<std::uint8_t>(rng.below(256));
    if (rng.chance(0.3)) bytes.resize(rng.below(bytes.size()));
    if (const auto got = decode_request(bytes)) BOOST_TEST(check(got->problem).has_value());
  }
  const std::vector<std::uint8_t> bomb{0xdd, 0x7f, 0xff, 0xff, 0xff};
  BOOST_TEST(!decode_request(bomb).has_value());
  BOOST_TEST(!decode_request(std::vector<std::uint8_t>(100000, 0x91)).has_value());
}

BOOST_AUTO_TEST_CASE(a_length_prefix_is_little_endian) {
  const auto prefix = length_prefix(0x01020304);
  BOOST_TEST(prefix[0] == 4);
  BOOST_TEST(read_length(prefix) == 0x01020304u);
}
