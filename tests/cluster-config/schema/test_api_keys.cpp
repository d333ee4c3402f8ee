#include <boost/test/unit_test.hpp>

#include "cluster-config/schema/api_keys.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::config;

namespace {

const std::filesystem::path folder = tests::source_path("tests/cluster-config/schema/api_keys");

std::string said(const std::vector<Mistake>& mistakes) { return render(mistakes, "keys.toml"); }

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read_again) {
  ApiKeys keys;
  keys.salt.fill(0x5a);
  ApiKey full, bare;
  full.name = "web";
  full.hash = keys.hash("sb-1");
  full.tenant = "shop";
  full.most = Criticality::standard;
  full.requests_per_minute = 600;
  full.tokens_per_minute = 1.5e6;
  bare.name = "front";
  bare.hash = keys.hash("sb-2");
  const auto parsed = parse_api_keys(api_keys_head(keys) + api_key_entry(full) + api_key_entry(bare));
  BOOST_REQUIRE_MESSAGE(parsed.keys.has_value(), said(parsed.mistakes));
  BOOST_TEST((parsed.keys->salt == keys.salt));
  BOOST_REQUIRE(parsed.keys->keys.size() == 2u);
  const ApiKey& read = parsed.keys->keys[0];
  BOOST_TEST(read.name == "web");
  BOOST_TEST((read.hash == full.hash));
  BOOST_TEST(read.tenant == "shop");
  BOOST_TEST((read.most == Criticality::standard));
  BOOST_TEST(read.requests_per_minute == 600);
  BOOST_TEST(read.tokens_per_minute == 1.5e6);
  BOOST_TEST(parsed.keys->keys[1].tenant == "");
  BOOST_TEST((parsed.keys->keys[1].most == Criticality::critical));
}

BOOST_AUTO_TEST_CASE(a_hash_depends_on_key_and_salt_and_is_that_of_the_standard) {
  ApiKeys keys, others;
  others.salt.fill(1);
  BOOST_TEST((keys.hash("a") != keys.hash("b")));
  BOOST_TEST((keys.hash("a") != others.hash("a")));
  // python3 -c 'import hashlib; print(hashlib.blake2b(b"sb-1", digest_size=32, key=bytes([1]*16)).hexdigest())'
  BOOST_TEST(others.hash("sb-1").hex() == "b17611db6fdf98da15050b2424141de828c7968c52e6965da9821f0beba329f8");
}

BOOST_AUTO_TEST_CASE(broken_files_of_keys_are_refused_with_these_words) {
  const auto parsed = parse_api_keys(tests::read_file(folder / "broken.toml"));
  BOOST_TEST(!parsed.keys.has_value());
  tests::check_golden(folder / "broken.txt", said(parsed.mistakes));
  BOOST_TEST(!parse_api_keys("").keys.has_value());
  BOOST_TEST(!parse_api_keys("salt = ").keys.has_value());
}
