// A bus of one process on free ports of the loopback: forwarders and nodes with the keys of one fleet.
#pragma once

#include <mutex>
#include <thread>

#include "messages/bus/forwarder.hpp"
#include "messages/bus/node.hpp"
#include "tests/messages/bus/support.hpp"

namespace signalbox::tests {

/// What a node was handed, thread-safe.
class Inbox {
 public:
  bus::NodeHandlers handlers() {
    bus::NodeHandlers out;
    out.on_delivery = [this](schema::DeliveryPtr delivery) {
      const std::lock_guard lock(mutex_);
      deliveries_.push_back(std::move(delivery));
    };
    return out;
  }
  std::vector<schema::DeliveryPtr> all() const {
    const std::lock_guard lock(mutex_);
    return deliveries_;
  }
  std::size_t count() const { return all().size(); }
  std::size_t count(std::string_view topic) const {
    std::size_t out = 0;
    for (const auto& delivery : all()) out += delivery->topic == topic ? 1 : 0;
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<schema::DeliveryPtr> deliveries_;
};

struct Fleet {
  std::map<ProcessName, bus::Keyring> keys = fleet_keys();
  std::vector<std::unique_ptr<bus::Forwarder>> forwarders;

  explicit Fleet(std::initializer_list<bus::Identity> buses) {
    for (const bus::Identity& bus : buses) start(bus);
  }
  bus::Forwarder& start(const bus::Identity& bus, const std::string& publish = "tcp://127.0.0.1:0",
                        const std::string& subscribe = "tcp://127.0.0.1:0") {
    bus::ForwarderOptions options;
    options.endpoints = {bus.id, publish, subscribe};
    options.keyring = keys.at(bus.id);
    auto forwarder = bus::Forwarder::start(std::move(options));
    BOOST_TEST_REQUIRE(error_of(forwarder) == "");
    forwarders.push_back(std::move(*forwarder));
    return *forwarders.back();
  }
  bus::NodeOptions options(const bus::Identity& identity, std::vector<std::string> subscriptions = {}) {
    bus::NodeOptions out;
    out.identity = identity, out.incarnation = {1, 1}, out.keyring = keys.at(identity.id);
    for (const auto& forwarder : forwarders) out.forwarders.push_back(forwarder->endpoints());
    out.subscriptions = std::move(subscriptions);
    return out;
  }
  std::unique_ptr<bus::Node> node(bus::NodeOptions options, bus::NodeHandlers handlers = {}) {
    auto out = bus::Node::start(std::move(options), std::move(handlers));
    BOOST_TEST_REQUIRE(error_of(out) == "");
    return std::move(*out);
  }
};

inline bool joined(bus::Node& node, std::uint32_t forwarders) {
  return eventually([&] { return node.stats().forwarders_joined == forwarders; });
}

/// Publishes until the inbox has one more of that topic: whether a way exists, however long it takes to be made. More of
/// them may still be under way.
inline bool gets_through(bus::Node& from, const Inbox& to, const schema::Message& message,
                         const std::string& topic) {
  const std::size_t before = to.count(topic);
  return eventually([&] {
    static_cast<void>(from.publish(message));
    return to.count(topic) > before;
  });
}

}  // namespace signalbox::tests
