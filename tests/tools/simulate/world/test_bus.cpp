#include <boost/test/unit_test.hpp>

#include "tools/simulate/world/node.hpp"

using namespace signalbox;
using namespace signalbox::simulate;

namespace {

constexpr std::string_view alert_only[] = {"alert"};

/// Repeats every alert that it hears under its own name, keeps the count, and asks to be told of it by a command.
struct Parrot {
  using Input = int;
  using Command = std::string;
  using Effects = kit::Effects<Command>;
  std::string heard = {};
  int wakes = 0, failed = 0, inputs = 0;

  static const kit::RoleInfo& role_info() {
    static const kit::RoleInfo info{Role::tool, "repeats", alert_only, alert_only};
    return info;
  }
  void on(const schema::Delivery& d, Instant, Effects& effects) {
    const auto& alert = std::get<schema::Alert>(d.message);
    heard += alert.name.str() + ",";
    effects.persist.push_back({"heard", heard});
    effects.command(alert.summary);
    if (alert.summary != "bad") return;
    schema::Alert broken;
    broken.summary = std::string(5000, 'x');
    effects.say(broken);
  }
  void on(const Input& input, Instant now, Effects& effects) {
    inputs += input;
    effects.wake_at(now + 1s);
  }
  void on_wake(Instant, Effects&) { ++wakes; }
  void on_persist_failed(const kit::Persist&, Instant, Effects&) { ++failed; }
  struct View {
    kit::Standing standing;
  };
  View view() const { return {}; }
};
static_assert(kit::Machine<Parrot>);

struct Place {
  EventQueue queue;
  std::map<std::pair<MemberId, MemberId>, Duration> delays;
  bool cut = false;
  Bus bus{queue, [this](MemberId from, MemberId to) -> std::optional<Duration> {
            if (cut) return std::nullopt;
            const auto found = delays.find({from, to});
            return found == delays.end() ? 1ms : found->second;
          }};
  std::string log;
  ProcessPlace places[3];
  std::string commands;

  Place() {
    for (std::size_t i = 0; i < 3; ++i) {
      places[i].name = ProcessName(std::string(1, static_cast<char>('a' + i)));
      places[i].log = [this](LogEntry e) { log += e.event + ";"; };
    }
  }
  std::unique_ptr<Node<Parrot>> node(MemberId id) {
    return std::make_unique<Node<Parrot>>(
        queue, bus, id, places[id], Parrot{},
        [this](const std::string& c, const Teller<Parrot>&) { commands += c + ";"; });
  }
  void say(MemberId author, std::string_view name, std::string summary = "s") {
    schema::Alert alert;
    alert.name = ProcessName(name);
    alert.summary = std::move(summary);
    BOOST_REQUIRE(bus.say(author, places[author].name, {}, alert));
  }
  void run(Duration d) { queue.run_until(queue.now() + d); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(messages_arrive_after_the_network_s_delay_and_in_order, Place) {
  auto b = node(1);
  b->start();
  delays[{0, 1}] = 10ms;
  say(0, "first");
  delays[{0, 1}] = 1ms;
  say(0, "second");
  run(9ms);
  BOOST_TEST(b->machine().heard == "");
  run(1ms);
  BOOST_TEST(b->machine().heard == "first,second,");
  BOOST_TEST(places[1].kept["heard"] == "first,second,");
  BOOST_TEST(commands == "s;s;");
  BOOST_TEST(b->machine().wakes == 1);
}

BOOST_FIXTURE_TEST_CASE(who_comes_late_gets_the_last_value_of_each_topic, Place) {
  say(0, "x", "old");
  say(0, "x", "new");
  say(0, "y");
  run(1s);
  auto b = node(1);
  b->start();
  run(1s);
  BOOST_TEST(b->machine().heard == "x,y,");
  BOOST_TEST(commands == "new;s;");
  run(2h);  // longer than alerts are kept
  auto c = node(2);
  c->start();
  run(1s);
  BOOST_TEST(c->machine().heard == "");
}

BOOST_FIXTURE_TEST_CASE(nothing_reaches_the_dead_and_a_cut_network_loses, Place) {
  auto b = node(1);
  b->start();
  say(0, "on-its-way");
  b.reset();
  b = node(1);
  run(1s);
  BOOST_TEST(b->machine().heard == "");
  b->start();  // hears what was kept
  run(1s);
  BOOST_TEST(b->machine().heard == "on-its-way,");
  cut = true;
  say(0, "lost");
  run(1s);
  BOOST_TEST(b->machine().heard == "on-its-way,");
}

BOOST_FIXTURE_TEST_CASE(effects_are_performed_in_order_and_failures_told, Place) {
  auto b = node(1);
  b->start();
  places[1].disk_full = true;
  say(0, "x");
  run(1s);
  BOOST_TEST(b->machine().failed == 1);
  BOOST_TEST(commands == "");  // dropped with the rest
  places[1].disk_full = false;
  say(0, "y", "bad");
  run(1s);
  BOOST_TEST(log == "bad_message;");
  b->tell(1);
  run(500ms);
  BOOST_TEST(b->machine().wakes == 1);
  run(500ms);
  BOOST_TEST(b->machine().wakes == 2);
}
