// How much this loop keeps in flight on each engine: as much as does not queue there.
//
// What waits in an engine is served first come first served, whoever it is for; what waits here goes by what it is
// worth. So the queue is kept here. Each answer's delay beyond what the engine's curve expects is measured; if even the
// least delay of a window is over the target, a queue stands at the engine. Of those who were ahead of that answer, delay
// times rate of answers were queued: what remains is the limit. One that binds while nothing queues rises by a tenth, and
// by twice as much each time that this was not enough.
//
// Sources: a standing queue shows in the minimum (CoDel, Nichols 2012); the correction by the queue's length is that of
// TCP Vegas (Brakmo 1994). Refused alternative: a fixed limit. It is right for one length of prompts and one load of the
// other routers.
#pragma once

#include <cstdint>
#include <vector>

#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::routing {

/// What the first byte of an answer says of its engine.
struct AnswerDelay {
  Instant began;             ///< of the attempt
  double took_s = 0;         ///< to its first byte
  double expected_s = 0;     ///< by the engine's curve, if nothing had waited there
  std::int64_t ahead = 0;    ///< in flight from here when it was sent
  bool curve_known = false;  ///< somebody declared or measured the curve
};

class EngineLimits {
 public:
  static constexpr std::int64_t none = INT32_MAX;

  /// `from[i]` is the old row of engine i, or none.
  void remap(const std::vector<EngineIndex>& from);
  /// A new life starts without a record.
  void forget(EngineIndex engine) { engines_[engine.at()] = {}; }
  /// A request was sent and there are now `in_flight`, of at most `limit`.
  void sent(EngineIndex engine, std::int64_t in_flight, std::int64_t limit, Instant now);
  /// `target`: the delay that is accepted; zero switches the limit off. The limit after this answer.
  std::int64_t answered(EngineIndex engine, const AnswerDelay& delay, Duration target, Instant now);
  std::int64_t limit(EngineIndex engine) const { return engines_[engine.at()].limit; }

 private:
  static constexpr Duration window = 1s;
  static constexpr std::int64_t few = 4;  ///< so many queue behind nobody
  struct PerEngine {
    std::int64_t limit = none;
    double base = 0;             ///< real over expected time without a queue; 0: not measured
    double rate = 0;             ///< answers a second, smoothed
    double rise = 0;             ///< share by which the limit rises next
    Instant risen = never_yet;   ///< answers to what was sent before say nothing of the limit since then
    Instant opened = never_yet;  ///< the window
    std::int64_t answers = 0;    ///< in the window
    bool bound = false;          ///< the limit was reached in it
    double least_excess_s = 0;   ///< of its answers
    std::int64_t ahead = 0;      ///< of that answer
  };
  static void learn_base(PerEngine& e, const AnswerDelay& delay);
  static void judge(PerEngine& e, double target_s, Instant now);
  static void open_window(PerEngine& e, Instant now);

  std::vector<PerEngine> engines_;
};

}  // namespace signalbox::routing
