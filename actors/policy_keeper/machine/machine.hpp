// The policy-keeper: compiles the policy file and publishes it; a file that does not compile changes nothing but raises an
// alert with its errors. The last good text is kept, so that a keeper restarted over a broken file still has a policy.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/kit/shape/alerts.hpp"
#include "actors/kit/shape/machine.hpp"

namespace signalbox::policy_keeper {

/// The policy file was read.
struct PolicyText {
  std::string text;
};
/// The policy file could not be read, or asks of the fleet what it cannot do.
struct PolicyUnreadable {
  std::string error;
};
/// Read the policy file and tell.
struct ReadPolicy {};

struct Options {
  ProcessName id;
  std::string file;      ///< for errors
  std::string kept;      ///< what was persisted as `kept_name`; empty: nothing
  Duration repeat = 5s;  ///< how often the policy in force is said again
};

struct View {
  kit::Standing standing;
  std::string name;
  std::uint64_t version = 0;
  std::uint64_t refused = 0;  ///< texts that did not compile
};

class Machine {
 public:
  using Input = std::variant<PolicyText, PolicyUnreadable>;
  using Command = ReadPolicy;
  using Effects = kit::Effects<Command>;
  static constexpr std::string_view kept_name = "policy";

  explicit Machine(Options options) : options_(std::move(options)) {}
  static const kit::RoleInfo& role_info();

  void on(const schema::Delivery& delivery, Instant now, Effects& effects);
  void on(const Input& input, Instant now, Effects& effects);
  void on_wake(Instant now, Effects& effects);
  void on_persist_failed(const kit::Persist& failed, Instant now, Effects& effects);
  View view() const;

 private:
  /// Errors: why the policy stays as it was.
  Status take(std::string text, bool keep, Instant now, Effects& effects);
  Status refuse(std::string why, Instant now, Effects& effects);
  void answer_orders(const Status& taken, Effects& effects);
  void say_policy(Instant now, Effects& effects);

  Options options_;
  kit::AlertBook alerts_;
  std::string source_;  ///< of what is in force
  std::optional<schema::Policy>
      in_force_;  ///< with every number said: a receiver of another version has other defaults
  Instant say_next_ = never_yet;
  std::vector<std::string> orders_;  ///< to read the file, not answered yet
  std::uint64_t refused_ = 0;
  bool started_ = false;
};

}  // namespace signalbox::policy_keeper
