// What a fleet is made of and how its processes run, as read from one TOML file. Every key is declared in
// settings.hpp. What the fleet may do (limits, retries, residency ...) is in the policy file, never here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/digest.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"
#include "messages/base/words.hpp"

namespace signalbox::config {

enum class Security : std::uint8_t {
  curve,  ///< encrypted, authenticated, identity bound to topics
  none,   ///< loopback or a private ipc directory only
};
using signalbox::EngineKind;
enum class ControlKind : std::uint8_t {
  optimizer,  ///< processes of role global-optimizer
  feedback,   ///< processes of role feedback-balancer
};
enum class Coordination : std::uint8_t {
  embedded,  ///< optimizers agree on their leader over the bus
  etcd,      ///< a lease in etcd makes the leader
};

/// Where a declaration stands in the file, counted from 1.
struct Place {
  int line = 0;
  int column = 0;
};

/// Step time of an engine: a + b*batch + k*context tokens + c*prefill tokens, in seconds.
struct Profile {
  std::string name;
  double a = 0;                     ///< s per step
  double b = 0;                     ///< s per sequence in the batch
  double k = 0;                     ///< s per context token held by the batch
  double c = 0;                     ///< s per prefill token
  std::uint64_t kv_tokens = 0;      ///< KV memory
  std::uint32_t max_batch = 0;      ///< sequences
  std::uint32_t prefill_chunk = 0;  ///< tokens per step
  Place place;
};

struct Cluster {
  ClusterName name;
  DomainName region;
  DomainName zone;
  Place place;
};

/// An engine that the launcher starts as `signalbox engine-sim`.
struct Simulated {
  double speed = 1.0;           ///< its real step times are the profile's divided by this; plans are not told
  std::uint64_t kv_tokens = 0;  ///< the profile's unless given
  std::uint64_t seed = 1;
  std::string tls_certificate, tls_key;  ///< PEM files; empty: plain HTTP
};

struct Engine {
  EngineName name;
  ClusterName cluster;
  DomainName rack;  ///< the engine's own name unless given
  std::string url;  ///< base URL, http(s)://host:port without a trailing slash
  EngineKind kind = EngineKind::openai;
  std::vector<ModelName> models;  ///< sorted
  std::string profile;
  std::size_t profile_row = 0;  ///< of Config::profiles
  std::string metrics_path;     ///< the kind's unless given; empty: none
  std::string health_path;
  std::string kv_events;          ///< a ZeroMQ endpoint; empty: it publishes none
  std::string kv_replay;          ///< likewise
  std::uint32_t connections = 0;  ///< pooled connections that one router keeps at most
  std::string tls_identity;  ///< as the fleet table says it: "name:HOST" or "sha256:HEX[,HEX]"; empty: http
  std::string tls_authorities;  ///< a PEM file; empty: the system's
  std::string api_key_file;     ///< holds the key that it wants; empty: what the client sends is passed on
  double capacity_scale = 1.0;  ///< of the declared profile, for engines known to be slower or faster
  std::optional<Simulated> simulated;
  Place place;
};

/// One direction of the network between two clusters.
struct Link {
  ClusterName from;
  ClusterName to;
  Duration rtt{};
  Place place;
};

/// A process that the launcher starts as `signalbox run ROLE --id ID`.
struct Process {
  std::string role;
  ProcessName id;
  ClusterName cluster;              ///< of a router or proxy; may be empty
  std::string listen;               ///< host:port where clients arrive; empty for roles that serve none
  std::string operator_listen;      ///< host:port of /healthz, /readyz, /metrics; empty: none
  std::vector<EngineName> engines;  ///< an engine-proxy's; its cluster's unless given
  Place place;
};

/// A forwarder. Publishers connect to `publish`, subscribers to `subscribe`.
struct Bus {
  ProcessName id;
  std::string publish;  ///< ZeroMQ endpoint, tcp:// or ipc:// (relative ipc paths lie in the state directory)
  std::string subscribe;
  std::string operator_listen;
  Place place;
};

struct Control {
  ControlKind kind = ControlKind::optimizer;
  Duration period{};                 ///< from plan to plan
  Duration leader_timeout{};         ///< silence after which a standby stands for leader
  double feedback_gain = 0;          ///< feedback only: what a score's distance from the average is worth
  double feedback_smoothing = 0;     ///< feedback only: weight of the newest score, (0, 1]
  std::uint32_t feedback_delay = 0;  ///< feedback only: periods by which the scores lag
  std::uint32_t solve_iterations = 0;
  std::uint64_t solve_memory_mib = 0;
  Coordination coordination = Coordination::embedded;
  std::vector<std::string> etcd;                             ///< http(s)://host:port of its members
  std::string etcd_authorities, etcd_certificate, etcd_key;  ///< PEM files; empty: the system's, none, none
  Duration lease{};  ///< etcd: without renewal a leader is one no more after it
};

struct Intervals {
  Duration scrape{};      ///< an engine-proxy reads an engine
  Duration beat{};        ///< every process says that it lives
  Duration report{};      ///< routers report demand and outcomes
  Duration share{};       ///< routers publish what they sent where
  Duration keep_alive{};  ///< the leader repeats term and digest
  Duration watchdog{};    ///< a process whose loops have not turned for so long hangs; zero: nobody looks
};

struct Router {
  std::uint64_t body_limit_mib = 0;
  std::uint32_t connections = 0;       ///< client connections at most
  std::uint32_t loops = 0;             ///< event loops; 0: by the machine's cores
  std::uint64_t decisions = 0;         ///< records kept in the ring file
  std::uint64_t recent_decisions = 0;  ///< of these, kept whole in memory
  std::uint64_t continuation_mib = 0;  ///< for streams that may go on at another engine
  double published = 0;                ///< decisions a second said on the bus while somebody listens
  Duration drain_grace{};              ///< streams may finish after SIGTERM
  std::string tls_certificate;         ///< a PEM file; empty: clients speak plain HTTP
  std::string tls_key;                 ///< likewise
  Duration head_timeout{};             ///< from a request's first byte to the end of its head
  Duration body_timeout{};             ///< between two pieces of a request's body
  Duration idle_timeout{};             ///< of a client's connection between requests
  Duration stall_timeout{};            ///< of a client that takes nothing
  std::vector<std::string> cors_origins;
  std::string api_keys;  ///< a file of them; empty: anyone may ask
};

/// What routers tell a collector of OpenTelemetry traces.
struct Traces {
  std::string endpoint;    ///< URL; empty: none are made
  double share = 0;        ///< of the requests that come without a trace
  double limit = 0;        ///< traces a second of one router, at most
  std::string token_file;  ///< empty: none is sent
};

/// Processes that every fleet has beside those of its configuration: `signalbox up` and the operators' commands.
inline constexpr std::string_view launcher_id = "launcher";
inline constexpr std::string_view tool_id = "tool";

/// The folder of the default state folders, one for each fleet.
inline constexpr std::string_view default_state_root = ".signalbox";

/// A checked configuration: addresses are absolute, defaults filled in, references good.
struct Config {
  std::string file;  ///< as it was named
  std::string fleet;
  std::uint64_t fleet_epoch = 0;  ///< outranks every term; raised by hand after a disaster
  Security security = Security::curve;
  std::string keys_dir;         ///< absolute, or relative to the working directory
  std::string state_dir;        ///< likewise
  std::string policy;           ///< path of the policy file, relative paths resolved against `file`'s folder
  std::uint16_t port_base = 0;  ///< "+7" in an address means port_base + 7

  std::vector<Cluster> clusters;  ///< in the file's order, as are the others
  std::vector<Engine> engines;
  std::vector<Profile> profiles;
  std::vector<Link> links;  ///< both directions resolved
  std::vector<Process> processes;
  std::vector<Bus> buses;
  Control control;
  Intervals intervals;
  Router router;
  Traces traces;
  Digest digest;  ///< of everything above but the paths: equal for the processes of one running fleet

  const Cluster* find_cluster(const ClusterName& name) const;
  const Engine* find_engine(const EngineName& name) const;
  const Process* find_process(const ProcessName& id) const;
  const Bus* find_bus(const ProcessName& id) const;
  const Profile& profile_of(const Engine& engine) const { return profiles[engine.profile_row]; }
  /// The engine's profile with its step times divided by its capacity_scale: what plans start from.
  Profile declared_profile(const Engine& engine) const;
  /// Declared round trip; zero within a cluster, `absent` where nothing is declared.
  Duration rtt(const ClusterName& from, const ClusterName& to, Duration absent) const;
};

/// Ports of one fleet lie in [port_base, port_base + port_span). The last one is never in a config: a launcher
/// may hold it open to keep the block for itself.
inline constexpr std::uint16_t port_span = 100;
inline constexpr std::uint16_t guard_offset = port_span - 1;

/// Where the command line differs from the file, so that many fleets can run from one file at once.
struct Overrides {
  std::optional<std::uint16_t> port_base;
  std::optional<std::string> state_dir;
  std::optional<std::string> keys_dir;
};

/// One mistake in a configuration file.
struct Mistake {
  Place place;
  std::string what;
  std::string hint;
};

/// Either a config or every mistake that could be told, in the file's order.
struct Parsed {
  std::optional<Config> config;
  std::vector<Mistake> mistakes;
};

/// Parses and checks. `file` names the text in errors, and relative paths in it are relative to that file's
/// folder.
Parsed parse_config(std::string_view text, std::string_view file, const Overrides& overrides = {});

/// Everything in force as text, one row a line, without the paths: what the digest is over.
std::string summary(const Config& config);

/// "file:line:column: what; hint", one line per mistake.
std::string render(const std::vector<Mistake>& mistakes, std::string_view file);

}  // namespace signalbox::config

namespace signalbox {

template <>
struct EnumTable<config::Security> {
  static constexpr std::array rows{
      EnumRow{"curve", "encrypted and authenticated, each process bound to its topics"},
      EnumRow{"none", "open; only on loopback or in a private ipc directory"},
  };
};

template <>
struct EnumTable<config::ControlKind> {
  static constexpr std::array rows{
      EnumRow{"optimizer", "the global optimizer solves for the weights"},
      EnumRow{"feedback", "the legacy balancer nudges the weights after smoothed scores"},
  };
};

template <>
struct EnumTable<config::Coordination> {
  static constexpr std::array rows{
      EnumRow{"embedded", "optimizers agree on their leader over the bus"},
      EnumRow{"etcd", "a lease in etcd makes the leader"},
  };
};

}  // namespace signalbox
