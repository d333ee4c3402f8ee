// Keys are replaced while a fleet runs on them.
#include <charconv>
#include <set>

#include "tests/messages/bus/fleet.hpp"

using namespace signalbox;
using namespace signalbox::bus;
using namespace signalbox::tests;

namespace {

/// A fleet on keys in a folder, whose parts are started again one after another while somebody speaks.
class Rolling {
 public:
  Rolling() {
    BOOST_TEST_REQUIRE(error_of(keys_init(keys_, {monitor, router, bus_a, bus_b})) == "");
    for (const Identity& bus : {bus_a, bus_b})
      forwarders_.push_back(started({bus.id, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"}));
    start_listener();
    start_speaker();
    BOOST_TEST_REQUIRE(both_ways_work());
    before_ = said_;
  }

  void step(Rotation expected) {
    const auto rotated = keys_rotate(keys_);
    BOOST_TEST_REQUIRE(error_of(rotated) == "");
    BOOST_TEST((rotated->state == expected));
    for (auto& forwarder : forwarders_) {
      const ForwarderEndpoints where = forwarder->endpoints();
      forwarder->stop();
      forwarder.reset();
      say();
      forwarder = started(where);
      BOOST_TEST_REQUIRE(both_ways_work());
    }
    const std::unique_ptr<Node> old = std::move(listener_);
    start_listener();
    BOOST_TEST_REQUIRE(both_ways_work());
    old->stop();
    // Who stops may take what he has not sent yet with him.
    BOOST_TEST_REQUIRE(eventually([&] { return heard().contains(said_); }));
    speaker_->stop();
    start_speaker();
    BOOST_TEST_REQUIRE(both_ways_work());
  }
  /// Numbers that were said and that no listener heard, or that one heard twice.
  std::size_t lost() {
    BOOST_TEST(eventually([&] { return heard().contains(said_); }));
    const auto numbers = heard();
    return said_ - before_ -
           static_cast<std::size_t>(std::distance(numbers.upper_bound(before_), numbers.end()));
  }
  bool heard_twice() const {
    return std::ranges::any_of(inboxes_, [](const auto& inbox) {
      std::set<std::string> once;
      return std::ranges::any_of(inbox->all(), [&](const auto& d) {
        return !once.insert(std::get<schema::DecisionRecord>(d->message).decision).second;
      });
    });
  }

 private:
  std::unique_ptr<Forwarder> started(const ForwarderEndpoints& where) {
    ForwarderOptions options;
    options.endpoints = where;
    options.keyring = *load_keyring(keys_, where.id);
    auto forwarder = Forwarder::start(std::move(options));
    BOOST_TEST_REQUIRE(error_of(forwarder) == "");
    return std::move(*forwarder);
  }
  NodeOptions options(const Identity& identity) {
    NodeOptions out;
    out.identity = identity, out.incarnation = {++lives_, 1}, out.keyring = *load_keyring(keys_, identity.id);
    for (const auto& forwarder : forwarders_) out.forwarders.push_back(forwarder->endpoints());
    return out;
  }
  void start_listener() {
    NodeOptions listen = options(monitor);
    listen.subscriptions = {"decision/"};
    inboxes_.push_back(std::make_unique<Inbox>());
    auto node = Node::start(std::move(listen), inboxes_.back()->handlers());
    BOOST_TEST_REQUIRE(error_of(node) == "");
    listener_ = std::move(*node);
  }
  void start_speaker() {
    auto node = Node::start(options(router), {});
    BOOST_TEST_REQUIRE(error_of(node) == "");
    speaker_ = std::move(*node);
    // What a process says before it has joined is heard by nobody, whatever its keys.
    BOOST_TEST_REQUIRE(eventually([&] { return speaker_->stats().forwarders_joined == 2; }));
  }
  void say() { BOOST_TEST(error_of(speaker_->publish(decision_of(fmt::format("{}", ++said_)))) == ""); }
  /// Speaks until the listener gets what it says by both forwarders.
  bool both_ways_work() {
    const auto repeated = [&] { return listener_->stats().received.total().dropped_for(Drop::duplicate); };
    const std::uint64_t before = repeated();
    const bool joined_both = eventually([&] {
      say();
      return speaker_->stats().forwarders_joined == 2 && repeated() >= before + 2;
    });
    return joined_both && listener_->stats().received.total().dropped_for(Drop::bad_proof) == 0;
  }
  std::set<std::uint64_t> heard() const {
    std::set<std::uint64_t> out;
    for (const auto& inbox : inboxes_)
      for (const auto& d : inbox->all()) {
        const std::string& text = std::get<schema::DecisionRecord>(d->message).decision;
        std::uint64_t number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number);
        out.insert(number);
      }
    return out;
  }

  Folder folder_;
  std::string keys_ = folder_ / "keys";
  std::vector<std::unique_ptr<Forwarder>> forwarders_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;  ///< one for each life of the listener
  std::unique_ptr<Node> listener_, speaker_;
  std::uint64_t lives_ = 0, said_ = 0;
  std::uint64_t before_ = 0;  ///< what was said until everybody had joined
};

}  // namespace

BOOST_AUTO_TEST_CASE(while_keys_are_rotated_no_message_is_lost) {
  Rolling fleet;
  for (const Rotation state : {Rotation::announced, Rotation::switched, Rotation::steady}) fleet.step(state);
  BOOST_TEST(fleet.lost() == 0u);
  BOOST_TEST(!fleet.heard_twice());
}
