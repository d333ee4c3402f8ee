// One question at a time, to whichever member answers, and always an outcome.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <mutex>

#include "actors/global_optimizer/etcd/client.hpp"
#include "tests/actors/cluster_router/net/scripted_server.hpp"

using namespace signalbox;
using namespace signalbox::global_optimizer;

namespace {

struct Fixture {
  EtcdOptions options(std::vector<std::string> endpoints) const {
    return {std::move(endpoints), "", "", "", etcd_keys("demo"), "opt-1"};
  }
  std::string url() const { return fmt::format("http://{}", server.address().text()); }
  void ask(EtcdClient& client, std::uint64_t number, Duration patience) {
    AskEtcd question;
    question.kind = AskEtcd::Kind::renew, question.number = number, question.lease = 23;
    question.patience = patience;
    client.ask(question, [this](EtcdAnswer answer) {
      const std::lock_guard lock(mutex);
      answers.push_back(std::move(answer));
    });
  }
  bool answered(std::size_t count) {
    return net::turn_until(loop, [&] {
      server.poll();
      const std::lock_guard lock(mutex);
      return answers.size() >= count;
    });
  }
  net::Loop loop;
  net::ScriptedServer server{loop};
  std::mutex mutex;
  std::vector<EtcdAnswer> answers;
};

const std::string renewed = R"({"result":{"header":{"revision":"1"},"ID":"23","TTL":"2"}})";

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_question_is_posted_and_its_answer_read, Fixture) {
  EtcdClient client(options({url()}));
  ask(client, 1, 20s);
  BOOST_REQUIRE(server.hears(0, R"({"ID":"23"})"));
  server.peers[0]->say(
      fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", renewed.size(), renewed));
  BOOST_REQUIRE(answered(1));
  BOOST_TEST(answers[0].number == 1u);
  BOOST_TEST(answers[0].fault == "");
  BOOST_TEST((answers[0].ttl == 2s));
}

BOOST_FIXTURE_TEST_CASE(a_member_that_does_not_answer_is_given_up_and_the_next_one_asked, Fixture) {
  EtcdClient client(options({"http://127.0.0.1:1", url()}));
  ask(client, 1, 20s);
  BOOST_REQUIRE(answered(1));
  BOOST_TEST(answers[0].fault != "");
  ask(client, 2, 100ms);
  BOOST_REQUIRE(answered(2));  // that one hears and is silent
  BOOST_TEST(answers[1].fault != "");
  BOOST_TEST(answers[1].number == 2u);
}

BOOST_FIXTURE_TEST_CASE(it_ends_while_it_waits_for_an_answer, Fixture) {
  {
    EtcdClient client(options({url()}));
    ask(client, 1, 600s);
    BOOST_REQUIRE(server.hears(0, "POST /v3/lease/keepalive"));
  }
  BOOST_TEST(answers.empty());
}
