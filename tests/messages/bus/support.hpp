// What the tests of the bus share: a temporary folder, a hand-driven author, waiting on a condition.
#pragma once

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "messages/bus/proof.hpp"
#include "messages/bus/receiver.hpp"
#include "messages/codec/codec.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/results.hpp"

namespace signalbox::tests {

/// True as soon as `condition` is; false if it is not within the deadline.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::seconds deadline = std::chrono::seconds(20)) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline const bus::Identity proxy{ProcessName("proxy-east"), Role::engine_proxy, ClusterName("east")};
inline const bus::Identity monitor{ProcessName("monitor-1"), Role::health_monitor, ClusterName()};
inline const bus::Identity optimizer{ProcessName("optimizer-1"), Role::global_optimizer, ClusterName()};
inline const bus::Identity router{ProcessName("router-east"), Role::cluster_router, ClusterName("east")};
inline const bus::Identity bus_a{ProcessName("bus-a"), Role::forwarder, ClusterName()};
inline const bus::Identity bus_b{ProcessName("bus-b"), Role::forwarder, ClusterName()};

inline std::map<ProcessName, bus::Keyring> fleet_keys() {
  return bus::make_keyrings({proxy, monitor, optimizer, router, bus_a, bus_b});
}

/// Frames that own their bytes.
struct Packet {
  std::vector<schema::Bytes> parts;
  std::vector<bus::FrameView> views() const { return {parts.begin(), parts.end()}; }
};

/// Says messages as a process would, or as it would not.
struct Author {
  const bus::Keyring* keyring = nullptr;
  ProcessName id;
  Incarnation incarnation{1, 77};
  std::map<std::string, std::uint64_t> sequences{};

  Packet say(const schema::Message& message, Duration sent = 100s) {
    return say_on(schema::topic_of(message, id), message, sent);
  }
  Packet say_on(const std::string& topic, const schema::Message& message, Duration sent = 100s) {
    const auto& info = schema::info_of(message);
    schema::Envelope e{id, incarnation, ++sequences[topic], sent, {}, info.kind, info.version, 0};
    Packet out;
    out.parts = {schema::Bytes(topic.begin(), topic.end()), codec::encode(e), codec::encode(message), {}};
    if (keyring != nullptr)
      out.parts[3] = bus::make_proof(*keyring, info.protection, {topic, out.parts[1], out.parts[2]});
    return out;
  }
};

inline schema::EngineSignal signal_of(std::string_view engine) {
  schema::EngineSignal out;
  out.cluster = ClusterName("east"), out.engine = EngineName(engine);
  return out;
}
inline schema::EngineProfile profile_of(std::string_view engine) {
  schema::EngineProfile out;
  out.cluster = ClusterName("east"), out.engine = EngineName(engine);
  return out;
}
inline schema::HealthVerdict verdict_of(std::string_view engine) {
  schema::HealthVerdict out;
  out.engine = EngineName(engine);
  return out;
}
inline schema::DecisionRecord decision_of(std::string_view id) {
  schema::DecisionRecord out;
  out.cluster = ClusterName("east"), out.decision = id;
  return out;
}

}  // namespace signalbox::tests
