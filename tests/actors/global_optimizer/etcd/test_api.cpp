// Questions as etcd takes them, and answers as etcd 3.4.23 gave them.
#include <boost/test/unit_test.hpp>

#include "actors/global_optimizer/etcd/api.hpp"
#include "tests/support/results.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;
using Kind = AskEtcd::Kind;
using tests::error_of;

namespace {

const EtcdKeys keys = etcd_keys("demo");

AskEtcd ask(Kind kind, std::int64_t lease = 0) {
  AskEtcd out;
  out.kind = kind, out.lease = lease, out.ttl = 1500ms, out.counter = 58, out.counter_revision = 7;
  return out;
}

EtcdAnswer read(Kind kind, std::string_view body) {
  const auto out = read_answer(ask(kind), body);
  BOOST_TEST_REQUIRE(error_of(out) == "");
  return *out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(keys_are_those_of_the_fleet) {
  BOOST_TEST(keys.leader == "signalbox/demo/leader");
  BOOST_TEST(keys.counter == "signalbox/demo/term");
}

BOOST_AUTO_TEST_CASE(questions_are_calls_of_the_gateway) {
  BOOST_TEST(call_for(ask(Kind::grant), keys, "opt-1").path == "/v3/lease/grant");
  BOOST_TEST(call_for(ask(Kind::grant), keys, "opt-1").body == R"({"TTL":"2"})");  // whole seconds, upwards
  BOOST_TEST(call_for(ask(Kind::renew, 9), keys, "opt-1").path == "/v3/lease/keepalive");
  BOOST_TEST(call_for(ask(Kind::renew, 9), keys, "opt-1").body == R"({"ID":"9"})");
  BOOST_TEST(call_for(ask(Kind::release, 9), keys, "opt-1").path == "/v3/lease/revoke");
  BOOST_TEST(call_for(ask(Kind::look), {"k", "c"}, "opt-1").body ==
             R"({"success":[{"requestRange":{"key":"aw=="}},{"requestRange":{"key":"Yw=="}}]})");
  BOOST_TEST(
      call_for(ask(Kind::campaign, 9), {"k", "c"}, "v").body ==
      R"({"compare":[{"key":"aw==","target":"CREATE","result":"EQUAL","createRevision":"0"},)"
      R"({"key":"Yw==","target":"MOD","result":"EQUAL","modRevision":"7"}],)"
      R"("success":[{"requestPut":{"key":"aw==","value":"dg==","lease":"9"}},{"requestPut":{"key":"Yw==","value":"NTg=","lease":"0"}}],)"
      R"("failure":[{"requestRange":{"key":"aw=="}},{"requestRange":{"key":"Yw=="}}]})");
}

BOOST_AUTO_TEST_CASE(leases_are_granted_renewed_and_found_gone) {
  const auto granted = read(
      Kind::grant, R"({"header":{"revision":"1","raft_term":"2"},"ID":"2324035722175890949","TTL":"2"})");
  BOOST_TEST(granted.lease == 2324035722175890949);
  BOOST_TEST((granted.ttl == 2s));
  BOOST_TEST((read(Kind::renew, R"({"result":{"header":{"revision":"1"},"ID":"23","TTL":"2"}})").ttl == 2s));
  BOOST_TEST((read(Kind::renew, R"({"result":{"header":{"revision":"3"},"ID":"23"}})").ttl == 0s));
}

BOOST_AUTO_TEST_CASE(a_campaign_is_won_or_says_who_holds_the_key) {
  BOOST_TEST(
      read(
          Kind::campaign,
          R"({"header":{"revision":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}}]})")
          .won);
  const auto lost = read(
      Kind::campaign,
      R"({"header":{"revision":"2"},"responses":[{"response_range":{"header":{"revision":"2"},"kvs":[)"
      R"({"key":"aw==","create_revision":"2","mod_revision":"2","version":"1","value":"dg==","lease":"23"}],"count":"1"}},)"
      R"({"response_range":{"header":{"revision":"2"},"kvs":[{"key":"Yw==","mod_revision":"12","value":"NTg="}],"count":"1"}}]})");
  BOOST_TEST(!lost.won);
  BOOST_TEST(lost.holder == "v");
  BOOST_TEST(lost.counter == 58u);
  BOOST_TEST(lost.counter_revision == 12);
}

BOOST_AUTO_TEST_CASE(keys_that_are_not_there_are_nobody_and_nothing) {
  const auto seen = read(
      Kind::look,
      R"({"header":{"revision":"1"},"succeeded":true,"responses":[{"response_range":{"header":{"revision":"1"}}},)"
      R"({"response_range":{"header":{"revision":"1"}}}]})");
  BOOST_TEST(seen.holder == "");
  BOOST_TEST(seen.counter == 0u);
  BOOST_TEST(seen.counter_revision == 0);
}

BOOST_AUTO_TEST_CASE(errors_are_told_but_a_lease_that_is_gone_is_given_back) {
  constexpr std::string_view gone =
      R"({"error":"etcdserver: requested lease not found","message":"etcdserver: requested lease not found","code":5})";
  BOOST_TEST(error_of(read_answer(ask(Kind::release), gone)) == "");
  BOOST_TEST(error_of(read_answer(ask(Kind::campaign), gone)) ==
             "etcd says: etcdserver: requested lease not found");
  for (const std::string_view body : {"", "no json", "[]", "{}", R"({"header":)"})
    BOOST_TEST(error_of(read_answer(ask(Kind::look), body)) != "", body);
}
