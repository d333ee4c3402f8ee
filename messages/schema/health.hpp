// What health-monitors say.
#pragma once

#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// What a verdict rests on.
enum class Evidence : std::uint8_t {
  none,
  signals_fresh,
  signals_late,
  engine_unreachable,
  engine_errors,
  no_progress,
  requests_failing,
  slow,
  new_incarnation,
  ordered,
  ejection_capped,
  panic,
  never_seen,
};

/// One monitor's word on one engine.
struct HealthVerdict {
  static constexpr MessageInfo info{10,
                                    1,
                                    "health_verdict",
                                    "verdict/<engine>/<monitor>/",
                                    "whether an engine may serve, at which capacity, and why",
                                    {Role::health_monitor},
                                    Protection::signature,
                                    30s,
                                    2048};

  EngineName engine;
  Incarnation incarnation;
  HealthState state = HealthState::starting;
  double capacity_factor = 1.0;
  Duration since{};
  Evidence evidence = Evidence::none;
  std::string detail;
  double suspicion = 0;
  bool isolated = false;

  static constexpr auto fields() {
    using T = HealthVerdict;
    return std::tuple{
        field(1, "engine", &T::engine, "the engine"),
        field(2, "incarnation", &T::incarnation, "which life of it"),
        field(3, "state", &T::state, "the verdict"),
        field(4, "capacity_factor", &T::capacity_factor, "share of its declared capacity that may be planned")
            .unit("share")
            .within(0, 1),
        field(5, "since", &T::since, "how long the state has lasted").unit("s").within(0, 1e9),
        field(6, "evidence", &T::evidence, "what the verdict rests on"),
        field(7, "detail", &T::detail, "the evidence in words and numbers").at_most(512),
        field(8, "suspicion", &T::suspicion, "accrued suspicion (phi)").within(0, 1e6),
        field(9, "isolated", &T::isolated, "the monitor hears too little to judge; hold what was in force"),
    };
  }
};

enum class Severity : std::uint8_t { info, warning, critical };

/// Something that a person should know, raised and cleared. While it stands it is repeated each 10 s: one that is not
/// heard of for longer than it is kept has lost its author.
struct Alert {
  static constexpr MessageInfo info{11,
                                    2,
                                    "alert",
                                    "alert/<name>/<author>/",
                                    "something that a person should know, raised or cleared",
                                    every_role,
                                    Protection::mac,
                                    35s,
                                    4096};

  ProcessName name;
  bool raised = true;
  Severity severity = Severity::warning;
  std::string summary;
  std::string look_closer;
  std::string subject;
  std::string owner;
  std::string runbook;

  static constexpr auto fields() {
    using T = Alert;
    return std::tuple{
        field(1, "name", &T::name, "its stable name"),
        field(2, "raised", &T::raised, "raised, or cleared"),
        field(3, "severity", &T::severity, "how bad"),
        field(4, "summary", &T::summary, "what happened, with numbers").at_most(1024),
        field(5, "look_closer", &T::look_closer, "the command that shows more").at_most(256),
        field(6, "subject", &T::subject, "the engine, cluster or process that it is about").at_most(128),
        field(7, "owner", &T::owner, "whose it is to mend").at_most(64),
        field(8, "runbook", &T::runbook, "where it is written what to do").at_most(256),
    };
  }
};

}  // namespace signalbox::schema

template <>
struct signalbox::EnumTable<signalbox::schema::Evidence> {
  static constexpr std::array rows{
      EnumRow{"none", "nothing speaks for or against it"},
      EnumRow{"signals_fresh", "its signals are fresh and say that it serves"},
      EnumRow{"signals_late", "its signals are late"},
      EnumRow{"engine_unreachable", "its proxy cannot reach it"},
      EnumRow{"engine_errors", "it answers its proxy with errors"},
      EnumRow{"no_progress", "it has requests and no token has moved"},
      EnumRow{"requests_failing", "routers report that requests to it fail"},
      EnumRow{"slow", "it is much slower than its curve"},
      EnumRow{"new_incarnation", "it was restarted"},
      EnumRow{"ordered", "an operator ordered it"},
      EnumRow{"ejection_capped", "it looks bad, but the policy's ejection cap is reached"},
      EnumRow{"panic", "too few look ready: the panic rule holds"},
      EnumRow{"never_seen", "nothing has been heard of it yet"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::schema::Severity> {
  static constexpr std::array rows{
      EnumRow{"info", "for the record"},
      EnumRow{"warning", "look at it today"},
      EnumRow{"critical", "look at it now"},
  };
};
