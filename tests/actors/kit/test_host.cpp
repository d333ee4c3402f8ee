#include <boost/test/unit_test.hpp>

#include "tests/support/caf_host.hpp"

using namespace signalbox;
using namespace signalbox::tests;

namespace {

/// Counts what it hears; throws, or has something to persist, when told so.
class Fragile {
 public:
  struct Told {
    std::string word;
  };
  using Input = Told;
  using Command = std::string;
  using Effects = kit::Effects<Command>;
  struct View {
    kit::Standing standing;
  };

  static const kit::RoleInfo& role_info() {
    static constexpr kit::RoleInfo info{Role::module, "for tests", {}, {}};
    return info;
  }
  void on(const schema::Delivery&, Instant, Effects& e) { e.note("heard", std::to_string(++count_)); }
  void on(const Told& told, Instant now, Effects& e) {
    if (told.word == "throw") throw std::runtime_error("told to");
    if (told.word == "persist") e.persist.push_back({"x", "y"}), e.command("after persisting");
    if (told.word == "wake") e.wake_at(now + 1s);
    e.note("told", fmt::format("{} {}", told.word, ++count_));
  }
  void on_wake(Instant, Effects& e) { e.note("woken", std::to_string(count_)); }
  void on_persist_failed(const kit::Persist& p, Instant, Effects& e) { e.note("persist_failed", p.name); }
  View view() const { return {{true, std::to_string(count_), false, {}, {}, {}}}; }

 private:
  int count_ = 0;
};

struct Recorder : kit::Ports {
  std::vector<std::string> lines;
  bool disk_full = false;
  Status persist(const kit::Persist& p) override {
    if (disk_full) return fail(ErrorKind::io, "no space left");
    return lines.push_back("persist " + p.name), Status{};
  }
  void publish(const schema::Message& m) override { lines.push_back("say " + show(m)); }
  void log(const kit::LogLine& l) override { lines.push_back(std::string(l.event) + " " + l.text); }
};

struct Stage {
  caf::actor_system_config config;
  caf::actor_system system{test_config(config)};
  std::shared_ptr<Recorder> ports = std::make_shared<Recorder>();
  std::shared_ptr<kit::Board> board = std::make_shared<kit::Board>();
  std::string gave_up;
  caf::actor actor;

  Stage() {
    kit::HostOptions<Fragile> options;
    options.name = "fragile";
    options.make = [] { return Fragile(); };
    options.perform = [p = ports](const std::string& c, const auto&) { p->lines.push_back("do " + c); };
    options.ports = ports;
    options.board = board;
    options.give_up = [this](const std::string& why) { gave_up = why; };
    actor = system.spawn<kit::Host<Fragile>>(std::move(options));
  }
  ~Stage() {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    settle();
    actor = nullptr;
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  }
  void settle() {
    while (scheduler().try_run_once()) {
    }
  }
  void start() { caf::anon_send(actor, kit::StartAtom::value), settle(); }
  void tell(const std::string& word) {
    const kit::Teller<Fragile> teller(actor);
    teller({word});
    settle();
  }
  void hear() {
    caf::anon_send(actor, schema::DeliveryPtr(std::make_shared<const schema::Delivery>()));
    settle();
  }
  void advance(Duration d) { scheduler().advance_time(d), settle(); }
  std::vector<std::string> take() { return std::exchange(ports->lines, {}); }
};

using Lines = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(what_arrives_before_the_start_is_heard_after_it) {
  Stage stage;
  stage.hear();
  BOOST_TEST(stage.take().empty());
  stage.start();
  BOOST_TEST(stage.take() == (Lines{"woken 0", "heard 1"}), boost::test_tools::per_element());
  BOOST_TEST(stage.board->merged().ready);
  BOOST_TEST(stage.board->merged().state == "1");
}

BOOST_AUTO_TEST_CASE(a_machine_that_throws_is_replaced_under_the_same_address) {
  Stage stage;
  stage.start();
  stage.tell("a");
  stage.take();
  stage.tell("throw");
  BOOST_TEST(stage.take() == Lines{"actor_failed fragile: told to; it is started again, failure 1 in a row"},
             boost::test_tools::per_element());
  stage.tell("lost while it is away");
  BOOST_TEST(stage.take().empty());
  stage.advance(101ms);
  stage.tell("b");
  BOOST_TEST(stage.take() == (Lines{"woken 0", "told b 1"}), boost::test_tools::per_element());
  BOOST_TEST(stage.board->restarts() == 1);
}

BOOST_AUTO_TEST_CASE(the_process_gives_up_when_it_fails_again_and_again) {
  Stage stage;
  stage.start();
  for (int i = 0; i < 8; ++i) {
    BOOST_TEST(stage.gave_up.empty());
    stage.tell("throw");
    stage.advance(13s);
  }
  BOOST_TEST(stage.gave_up == "fragile fails again and again: told to");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_persisted_is_neither_said_nor_done) {
  Stage stage;
  stage.start();
  stage.take();
  stage.tell("persist");
  BOOST_TEST(stage.take() == (Lines{"persist x", "do after persisting", "told persist 1"}),
             boost::test_tools::per_element());
  stage.ports->disk_full = true;
  stage.tell("persist");
  BOOST_TEST(stage.take() == (Lines{"not_persisted no space left", "persist_failed x"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_newest_wish_to_be_woken_replaces_the_one_before) {
  Stage stage;
  stage.start();
  stage.tell("wake");
  stage.advance(600ms);
  stage.tell("wake");
  stage.take();
  stage.advance(600ms);
  BOOST_TEST(stage.take().empty());
  stage.advance(600ms);
  BOOST_TEST(stage.take() == Lines{"woken 2"}, boost::test_tools::per_element());
}
