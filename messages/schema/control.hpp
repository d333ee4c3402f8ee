// Policy, presence and orders.
#pragma once

#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// The policy in force, as text: every receiver compiles it and compares the hash.
struct Policy {
  static constexpr MessageInfo info{40,
                                    1,
                                    "policy",
                                    "policy/<keeper>/",
                                    "the policy in force",
                                    {Role::policy_keeper},
                                    Protection::signature,
                                    24h,
                                    4 << 20};

  std::string name;
  std::uint32_t version = 0;
  Digest hash;
  std::string text;
  static constexpr auto fields() {
    using T = Policy;
    return std::tuple{field(1, "name", &T::name, "its name").at_most(64),
                      field(2, "version", &T::version, "its version"),
                      field(3, "hash", &T::hash, "of its canonical text"),
                      field(4, "text", &T::text, "its source").at_most(1 << 20)};
  }
};

/// Every process, each second: it lives, and what it thinks.
struct Beat {
  static constexpr MessageInfo info{41,
                                    1,
                                    "beat",
                                    "beat/<role>/<id>/",
                                    "a process lives; what it believes and how well it keeps up",
                                    every_role,
                                    Protection::mac,
                                    10s,
                                    4096};

  Role role = Role::tool;
  ProcessName id;
  ClusterName cluster;
  bool ready = false;
  std::string state;
  bool leads = false;
  Term term;
  SnapshotVersion snapshot;
  Digest policy;
  Duration uptime{};
  Duration loop_lag{};
  std::uint64_t resident_bytes = 0;
  std::uint64_t messages_in = 0;
  std::uint64_t messages_refused = 0;
  std::uint64_t messages_lost = 0;
  std::uint64_t actors_restarted = 0;
  std::string endpoint;
  std::string operator_endpoint;
  static constexpr auto fields() {
    using T = Beat;
    return std::tuple{
        field(1, "role", &T::role, "what it is"),
        field(2, "id", &T::id, "which one"),
        field(3, "cluster", &T::cluster, "its cluster, if it has one"),
        field(4, "ready", &T::ready, "it does its work"),
        field(5, "state", &T::state, "in words").at_most(256),
        field(6, "leads", &T::leads, "it is the leader"),
        field(7, "term", &T::term, "the highest term that it knows"),
        field(8, "snapshot", &T::snapshot, "the version in force as it knows"),
        field(9, "policy", &T::policy, "hash of the policy in force as it knows"),
        field(10, "uptime", &T::uptime, "since its start").unit("s").within(0, 1e10),
        field(11, "loop_lag", &T::loop_lag, "how late its timers are").unit("s").within(0, 1e6),
        field(12, "resident_bytes", &T::resident_bytes, "memory").unit("bytes"),
        field(13, "messages_in", &T::messages_in, "messages accepted"),
        field(14, "messages_refused", &T::messages_refused, "messages dropped as bad, unauthorised or stale"),
        field(15, "messages_lost", &T::messages_lost, "gaps seen in sequences"),
        field(16, "actors_restarted", &T::actors_restarted, "actors that failed and were started again"),
        field(17, "endpoint", &T::endpoint, "where it serves clients").at_most(128),
        field(18, "operator_endpoint", &T::operator_endpoint, "where it serves operators").at_most(128)};
  }
};

/// What an operator may order.
enum class OrderKind : std::uint8_t { drain_engine, undrain_engine, reload_config, set_network, resign };

/// An operator's signed order.
struct Order {
  static constexpr MessageInfo info{42,
                                    1,
                                    "order",
                                    "order/<target>/",
                                    "an operator's order to a process or about an engine",
                                    {Role::tool},
                                    Protection::signature,
                                    0s,
                                    4096};

  ProcessName target;
  std::string id;
  OrderKind kind = OrderKind::drain_engine;
  EngineName engine;
  ClusterName from;
  ClusterName to;
  double value = 0;
  std::string operator_name;
  static constexpr auto fields() {
    using T = Order;
    return std::tuple{field(1, "target", &T::target,
                            "the process that shall carry it out; \"all\": every one that it concerns"),
                      field(2, "id", &T::id, "its id, for the receipts").at_most(64),
                      field(3, "kind", &T::kind, "what to do"),
                      field(4, "engine", &T::engine, "the engine that it is about"),
                      field(5, "from", &T::from, "of set_network: where requests enter"),
                      field(6, "to", &T::to, "of set_network: the engines' cluster"),
                      field(7, "value", &T::value, "of set_network: the round trip").unit("s").within(0, 1e6),
                      field(8, "operator", &T::operator_name, "who ordered it").at_most(64)};
  }
};

/// What a process made of an order.
struct OrderReceipt {
  static constexpr MessageInfo info{43,
                                    1,
                                    "order_receipt",
                                    "order_receipt/<role>/<id>/",
                                    "a process carried out an order, or why not",
                                    every_role,
                                    Protection::mac,
                                    0s,
                                    1024};

  Role role = Role::tool;
  ProcessName id;
  std::string order;
  bool done = false;
  std::string detail;
  static constexpr auto fields() {
    using T = OrderReceipt;
    return std::tuple{field(1, "role", &T::role, "what it is"), field(2, "id", &T::id, "which one"),
                      field(3, "order", &T::order, "id of the order").at_most(64),
                      field(4, "done", &T::done, "carried out"),
                      field(5, "detail", &T::detail, "in words").at_most(512)};
  }
};

/// What somebody listens to, as a forwarder sees it: messages that are costly to make are said only then.
struct Interest {
  static constexpr MessageInfo info{
      44,
      1,
      "interest",
      "interest/<forwarder>/",
      "which of the messages that are not kept somebody listens to at a forwarder",
      {Role::forwarder},
      Protection::mac,
      10s,
      4096};

  std::vector<ProcessName> messages;
  static constexpr auto fields() {
    using T = Interest;
    return std::tuple{field(1, "messages", &T::messages, "their names, sorted").at_most(64)};
  }
};

}  // namespace signalbox::schema

template <>
struct signalbox::EnumTable<signalbox::schema::OrderKind> {
  static constexpr std::array rows{
      EnumRow{"drain_engine", "give an engine nothing new"},
      EnumRow{"undrain_engine", "let an engine serve again"},
      EnumRow{"reload_config", "read the configuration again"},
      EnumRow{"set_network", "correct the declared round trip between two clusters"},
      EnumRow{"resign", "give up leadership"},
  };
};
