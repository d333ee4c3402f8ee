// The shape of a role: a pure state machine that is told things and answers with effects.
//
//   on(delivery, now, effects)   a message arrived on the bus
//   on(input, now, effects)      something of the role's own arrived: a reading, a solver's answer, a file
//   on_wake(now, effects)        the time that it asked for has come; called once at the start as well
//   view()                       what it believes, for operators and tests
//
// A machine reads no clock, draws no randomness of its own and touches nothing outside. The same machine runs in a CAF
// actor, in a plain loop in tests, and in the simulator's virtual world. Refused alternative: machines that call a
// port interface to act. Then the order of acts is the machine's control flow and a test needs a mock of the world;
// with effects as data it is a value that can be compared, logged and replayed.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/time.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::kit {

/// A line for the log: a stable event name, then the facts in words.
struct LogLine {
  schema::Severity severity = schema::Severity::info;
  std::string_view event;
  std::string text;
};

/// Bytes to be kept under a name in the process's state folder, atomically and durably.
struct Persist {
  std::string name;
  std::string bytes;
};

/// What a machine asks of its shell. The shell acts in this order: all of `persist` (durable before anything is said; if
/// one fails the rest of these effects is dropped and the machine is told), then `publish`, `commands`, `log`, and then
/// it waits for messages until `wake`.
template <class Command>
struct Effects {
  std::vector<Persist> persist;
  std::vector<schema::Message> publish;
  std::vector<Command> commands;
  std::vector<LogLine> log;
  std::optional<Instant> wake;

  void say(schema::Message message) { publish.push_back(std::move(message)); }
  void command(Command c) { commands.push_back(std::move(c)); }
  void note(std::string_view event, std::string text, schema::Severity severity = schema::Severity::info) {
    log.push_back({severity, event, std::move(text)});
  }
  /// Asks for on_wake() at this time at the latest; of several wishes in one answer the earliest wins. An answer with a
  /// wish replaces the wish of the answer before; one without leaves it standing.
  void wake_at(Instant when) { wake = wake ? std::min(*wake, when) : when; }
};

/// For roles without inputs or commands of their own.
struct None {};

/// What a machine thinks of itself, in the words of a beat.
struct Standing {
  bool ready = false;
  std::string state;
  bool leads = false;
  Term term;
  SnapshotVersion snapshot;
  Digest policy;
  friend bool operator==(const Standing&, const Standing&) = default;
};

/// What a role hears and says, by message name; the shell subscribes and the docs tell.
struct RoleInfo {
  Role role;
  std::string_view sentence;
  std::span<const std::string_view> hears;
  std::span<const std::string_view> says;
};

template <class M>
concept Machine = requires(M machine, const M& fixed, const schema::Delivery& delivery,
                           const typename M::Input& input, Instant now, Effects<typename M::Command>& effects,
                           const Persist& failed) {
  { M::role_info() } -> std::convertible_to<const RoleInfo&>;
  machine.on(delivery, now, effects);
  machine.on(input, now, effects);
  machine.on_wake(now, effects);
  machine.on_persist_failed(failed, now, effects);
  { fixed.view().standing } -> std::convertible_to<Standing>;
};

}  // namespace signalbox::kit
