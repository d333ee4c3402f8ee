// The monitor's own eye on one engine: whether its address answers, and, while nobody else uses it, whether it still makes
// a token. Probes are seldom while all is well and frequent while there is doubt.
#pragma once

#include <optional>
#include <string>

#include "messages/base/described.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::health_monitor {

enum class ProbeKind : std::uint8_t { health, generate };
enum class ProbeFault : std::uint8_t { none, unreachable, timed_out, malformed };

/// Ask the engine; the answer carries the number.
struct Probe {
  std::uint64_t number = 0;
  ProbeKind kind = ProbeKind::health;
  EngineIndex engine;
  std::string url;
  std::string post;  ///< JSON to be posted; empty: a GET
  Duration timeout{};
};

struct Probed {
  std::uint64_t number = 0;
  ProbeFault fault = ProbeFault::none;
  int status = 0;  ///< HTTP; 0 without an answer
};

/// What the probes showed.
struct Eye {
  bool answers = false;           ///< it answered a moment ago
  std::uint32_t unreachable = 0;  ///< connections in a row that could not be made
  std::uint32_t failed = 0;       ///< health probes in a row that failed, those included
  std::uint32_t barren = 0;       ///< generations in a row that brought no token
};

class Probes {
 public:
  /// `every`: between health probes of an engine that nobody doubts; zero: never. `first`: spreads the fleet over time.
  Probes(Duration every, Instant first) : every_(every), health_due_(first), generate_due_(first) {}

  /// What to ask now, if anything. `idle`: it has no work and routers have not used it lately.
  std::optional<ProbeKind> due(bool doubted, bool idle, Instant now);
  void started(ProbeKind kind, std::uint64_t number, Instant now);
  /// False if the answer is to none of ours that still counts.
  bool took(const Probed& answer, Instant now);
  Eye eye(Instant now) const;
  void forgive(Duration lateness);

  static constexpr Duration timeout_of(ProbeKind kind) { return kind == ProbeKind::health ? 1s : 5s; }

 private:
  struct Open {
    ProbeKind kind;
    std::uint64_t number;
    Instant since;
  };
  void took_health(const Probed& answer, Instant now);
  void took_generation(const Probed& answer, Instant now);

  Duration every_;
  Instant health_due_, generate_due_;
  std::optional<Open> open_;
  Instant answered_at_ = never_yet;
  std::uint32_t unreachable_ = 0, failed_ = 0, barren_ = 0;
};

}  // namespace signalbox::health_monitor
