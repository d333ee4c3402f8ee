// The engine-proxy: reads one engine's own interface and says what it knows and how old that is.
//
//   on_wake --StartScrape--> shell --ScrapeResult--> adapter --Reading--> life, curve --> engine_signal, engine_profile
//
// A reading that fails is said too, with the last good facts and their age: silence and bad news are different things.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/engine_proxy/events/kv_follower.hpp"
#include "actors/engine_proxy/machine/curve.hpp"
#include "actors/engine_proxy/machine/life.hpp"
#include "actors/kit/shape/alerts.hpp"
#include "actors/kit/shape/machine.hpp"

namespace signalbox::engine_proxy {

/// Fetch one page of the engine. The answer carries the same number and page.
struct StartScrape {
  std::uint64_t number = 0;
  std::size_t page = 0;
  std::string url;
  Duration timeout{};
  std::string post = {};  ///< JSON to be posted; empty: a GET
};

/// `untrusted`: its certificate is not the one that the fleet table names.
enum class FetchFault : std::uint8_t { none, unreachable, timed_out, malformed, untrusted };

/// What came of a StartScrape.
struct ScrapeResult {
  std::uint64_t number = 0;
  std::size_t page = 0;
  FetchFault fault = FetchFault::none;
  int status = 0;  ///< HTTP; 0 without an answer
  std::string body;
  std::string detail;  ///< of a fault, for the log
};
/// What the engine's KV events have told so far.
struct CacheHeard {
  KvState state;
};
/// The engine is taken out of this proxy's care.
struct Removed {
  std::string reason;
};

struct Options {
  EngineName engine;
  ClusterName cluster;
  EngineKind kind = EngineKind::openai;
  std::string url;           ///< base, without a trailing slash
  std::string metrics_path;  ///< in place of the kind's first page; empty: the kind's
  optimizer::StepTime curve;
  double kv_tokens = 0;
  double max_batch = 0;
  std::vector<ModelName> models;
  Duration interval = 250ms;
  Duration timeout = 1s;
  std::string kept;   ///< what was persisted under kept_name(); empty: nothing
  Incarnation fresh;  ///< the engine's incarnation if nothing was kept
};

struct View {
  kit::Standing standing;
  schema::EngineSignal signal;  ///< as said last
  Curve curve;
};

class Machine {
 public:
  using Input = std::variant<ScrapeResult, CacheHeard, Removed>;
  using Command = StartScrape;
  using Effects = kit::Effects<Command>;

  explicit Machine(Options options);
  static const kit::RoleInfo& role_info();
  static std::string kept_name(const EngineName& engine) { return "engine-" + engine.str(); }

  void on(const schema::Delivery& delivery, Instant now, Effects& effects);
  void on(const Input& input, Instant now, Effects& effects);
  void on_wake(Instant now, Effects& effects);
  void on_persist_failed(const kit::Persist& failed, Instant now, Effects& effects);
  View view() const;

 private:
  void take(const ScrapeResult& result, Instant now, Effects& effects);
  void take_reading(Reading reading, Instant now, Effects& effects);
  void take_sizes(const Reading& reading, Instant now, Effects& effects);
  void take_failure(schema::ScrapeState state, std::string detail, Instant now, Effects& effects);
  void take_cache(const KvState& heard, Instant now, Effects& effects);
  void say_cache(Instant now, Effects& effects);
  void watch_identity(const ScrapeResult& result, Instant now, Effects& effects);
  void measure(const Reading& reading, Instant now, Effects& effects);
  void say_signal(Instant now, Effects& effects);
  void say_profile(Instant now, Effects& effects);
  void start_scrape(Instant now, Effects& effects);
  Instant next_due() const;

  Options options_;
  const Adapter* adapter_;
  Life life_;
  CurveLearner learner_;
  std::optional<Reading> last_;  ///< the last good one
  Instant last_at_ = never_yet;
  std::optional<double> said_kv_tokens_;  ///< by a page that is read seldom
  schema::EngineSignal signal_;
  std::optional<KvState> cache_;
  Instant cache_next_ = end_of_time, cache_said_ = never_yet;
  kit::AlertBook alerts_;
  std::uint64_t number_ = 0;
  std::optional<Instant> waiting_since_;  ///< a scrape is out
  Instant scrape_next_ = never_yet, profile_next_ = never_yet, sizes_next_ = never_yet;
  bool removed_ = false;
};

}  // namespace signalbox::engine_proxy
