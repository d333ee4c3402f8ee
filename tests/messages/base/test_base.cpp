#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "messages/base/bounded.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/rng.hpp"
#include "messages/base/time.hpp"

using namespace signalbox;

BOOST_AUTO_TEST_CASE(names_accept_what_topics_can_carry) {
  for (const char* good : {"e1", "eu-west.gpu_7", "A", "..a", "-"})
    BOOST_TEST(EngineName::parse(good).has_value(), good);
  for (const char* bad : {"", "a/b", "a b", "\xc3\xa9", "a\n", ".", "..", "..."})
    BOOST_TEST(!EngineName::parse(bad).has_value(), bad);
  BOOST_TEST(!EngineName::parse(std::string(65, 'a')).has_value());
  BOOST_TEST(ModelName::parse("org/model:7b").has_value());
  BOOST_TEST(!ModelName::parse("a\"b").has_value());
  BOOST_TEST(EngineName("a/b").empty());
}

BOOST_AUTO_TEST_CASE(versions_compare_by_counter_then_id_then_sequence) {
  const SnapshotVersion a{Term{1, ProcessName("o2")}, 9};
  const SnapshotVersion b{Term{2, ProcessName("o1")}, 1};
  const SnapshotVersion c{Term{2, ProcessName("o2")}, 0};
  BOOST_TEST((a < b && b < c && a < c));
  BOOST_TEST(fmt::format("{}", b) == "2@o1.1");
}

BOOST_AUTO_TEST_CASE(seconds_round_trip_and_clamp) {
  BOOST_TEST(to_seconds(from_seconds(1.25)) == 1.25);
  BOOST_TEST((from_seconds(1e300) == Duration::max()));
  BOOST_TEST((from_seconds(std::nan("")) == Duration::zero()));
}

BOOST_AUTO_TEST_CASE(a_seed_gives_the_same_draws_everywhere) {
  Rng rng(42);
  BOOST_TEST(rng.next() == 15021278609987233951ULL);
  BOOST_TEST(rng.next() == 5881210131331364753ULL);
}

BOOST_AUTO_TEST_CASE(distributions_have_their_means) {
  Rng rng(7);
  constexpr int n = 200'000;
  double exponential = 0, normal = 0, square = 0, gamma = 0;
  std::vector<int> counts(10);
  for (int i = 0; i < n; ++i) {
    exponential += rng.exponential(3.0);
    const double x = rng.normal();
    normal += x, square += x * x;
    gamma += rng.gamma(0.5, 4.0);
    ++counts[rng.below(10)];
  }
  BOOST_TEST(exponential / n == 3.0, boost::test_tools::tolerance(0.02));
  BOOST_TEST(std::abs(normal / n) < 0.01);
  BOOST_TEST(square / n == 1.0, boost::test_tools::tolerance(0.02));
  BOOST_TEST(gamma / n == 2.0, boost::test_tools::tolerance(0.03));
  for (const int count : counts) BOOST_TEST(std::abs(count - n / 10) < 600);
}

BOOST_AUTO_TEST_CASE(a_digest_is_blake2b_256) {
  BOOST_TEST(digest_of("abc").hex() == "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  BOOST_TEST((Digest::from_hex(digest_of("abc").hex()).value() == digest_of("abc")));
  BOOST_TEST(!Digest::from_hex("zz").has_value());
}

BOOST_AUTO_TEST_CASE(bounded_containers_keep_their_bound) {
  FixedVector<int, 2> fixed;
  BOOST_TEST((fixed.push(1) && fixed.push(2) && !fixed.push(3)));
  Ring<int> ring(3);
  for (int i = 0; i < 5; ++i) ring.push(i);
  BOOST_TEST((ring.size() == 3 && ring.oldest() == 2 && ring.newest() == 4 && ring[1] == 3));
}
