#include "cluster-config/schema/settings.hpp"

#include <array>
#include <limits>

namespace signalbox::config {
namespace {

using T = SettingType;
constexpr double none = 0;
constexpr double any = std::numeric_limits<double>::infinity();

constexpr std::array table_rows{
    SettingTable{"", false, "The fleet as a whole."},
    SettingTable{"control", false, "The control plane."},
    SettingTable{"intervals", false, "How often processes do what they do again and again."},
    SettingTable{"router", false, "Every cluster-router."},
    SettingTable{"traces", false, "OpenTelemetry traces of requests."},
    SettingTable{"cluster", true, "A CPU cluster: a place where requests enter, and where engines stand."},
    SettingTable{"link", true, "The network between two clusters, as it is declared."},
    SettingTable{"profile", true,
                 "How fast a kind of engine is: a step takes a + b*batch + k*context + c*prefill."},
    SettingTable{"engine", true, "A model server."},
    SettingTable{"engine.simulated", false, "An engine that `signalbox up` starts as an engine-sim."},
    SettingTable{"bus", true, "A forwarder of the message bus."},
    SettingTable{"process", true, "A process of the fleet, which `signalbox up` starts."},
};

constexpr std::array setting_rows{
    Setting{"", "fleet", T::name, "", "", true, none, none, "", "The fleet's name."},
    Setting{"", "fleet_epoch", T::integer, "", "1", false, 1, 1e9, "",
            "Outranks every term of leadership; raised by hand after a disaster."},
    Setting{"", "security", T::choice, "", "curve", false, none, none, "curve|none",
            "How the bus is protected; none is for loopback and private ipc directories only."},
    Setting{"", "keys_dir", T::text, "", "", false, none, none, "",
            "Where the processes' keys are; keys in the state directory unless given."},
    Setting{"", "state_dir", T::text, "", "", false, none, none, "",
            "Where processes keep state, sockets and logs; .signalbox/FLEET unless given. Relative to the "
            "working "
            "directory."},
    Setting{"", "policy", T::text, "", "", true, none, none, "", "The policy file, relative to this file."},
    Setting{"", "port_base", T::integer, "", "0", false, 0, 65'436, "",
            "The port that \"+N\" in an address counts from; a fleet owns the hundred ports from here."},

    Setting{"control", "kind", T::choice, "", "optimizer", false, none, none, "optimizer|feedback",
            "Who sets the weights: the global optimizer, or the legacy feedback balancer."},
    Setting{"control", "period", T::duration, "s", "1s", false, 0.05, 3600, "", "From one plan to the next."},
    Setting{"control", "leader_timeout", T::duration, "s", "1s", false, 0.2, 600, "",
            "Silence of the leader after which a standby stands for leader."},
    Setting{"control", "feedback_gain", T::number, "", "0.5", false, 0, 10, "",
            "feedback: how far a score's distance from the average moves a weight."},
    Setting{"control", "feedback_smoothing", T::number, "", "0.3", false, 0.001, 1, "",
            "feedback: the weight of the newest score in the smoothed one."},
    Setting{"control", "feedback_delay", T::integer, "periods", "0", false, 0, 1000, "",
            "feedback: how many periods the scores lag behind."},
    Setting{"control", "solve_iterations", T::integer, "", "400", false, 1, 1e6, "",
            "The most iterations of one solve; the best plan found by then is taken."},
    Setting{"control", "solve_memory", T::integer, "MiB", "1024", false, 64, 1e6, "",
            "The most memory of the solving child process."},
    Setting{"control", "coordination", T::choice, "", "embedded", false, none, none, "embedded|etcd",
            "How optimizers agree on their leader: over the bus, or by a lease in etcd."},
    Setting{"control", "etcd", T::list, "", "", false, none, none, "",
            "The members of etcd, as http://host:port or https://host:port."},
    Setting{
        "control", "etcd_authorities", T::text, "", "", false, none, none, "",
        "A PEM file, relative to this one: who may vouch for etcd's certificates; the system's authorities "
        "unless given."},
    Setting{"control", "etcd_certificate", T::text, "", "", false, none, none, "",
            "A PEM file: the certificate that optimizers show to etcd."},
    Setting{"control", "etcd_key", T::text, "", "", false, none, none, "",
            "That certificate's private key, a PEM file without passphrase."},
    Setting{"control", "lease", T::duration, "s", "2s", false, 1, 600, "",
            "etcd: a leader that could not renew its lease for this long is replaced. Whole seconds; etcd "
            "itself allows none "
            "shorter than one and a half of its own elections."},

    Setting{"intervals", "scrape", T::duration, "s", "500ms", false, 0.02, 60, "",
            "An engine-proxy reads an engine."},
    Setting{"intervals", "beat", T::duration, "s", "250ms", false, 0.02, 60, "",
            "A process says that it lives."},
    Setting{"intervals", "watchdog", T::duration, "s", "30s", false, 0, 3600, "",
            "A process whose loops have not turned for this long hangs: the launcher kills it and starts it "
            "anew; 0: never."},
    Setting{"intervals", "report", T::duration, "s", "500ms", false, 0.05, 60, "",
            "A router reports demand and outcomes."},
    Setting{"intervals", "share", T::duration, "s", "200ms", false, 0.02, 60, "",
            "A router publishes what it sent where."},
    Setting{"intervals", "keep_alive", T::duration, "s", "1s", false, 0.05, 60, "",
            "The leader repeats the version in force."},

    Setting{"router", "body_limit", T::integer, "MiB", "64", false, 1, 1024, "",
            "The largest request body; above it the answer is 413."},
    Setting{"router", "connections", T::integer, "", "10000", false, 1, 1e6, "",
            "The most client connections."},
    Setting{"router", "loops", T::integer, "", "0", false, 0, 64, "",
            "Event loops that serve clients, each on a thread of its own; 0: one for each two cores, 16 at "
            "most."},
    Setting{"router", "decisions", T::integer, "", "1000000", false, 100, 1e8, "",
            "Decision records of 128 bytes in the ring file of the router's state folder, for `explain`, "
            "also after a "
            "restart."},
    Setting{
        "router", "recent_decisions", T::integer, "", "8192", false, 100, 1e8, "",
        "Of the latest decisions, those that are kept in memory with every candidate; about 500 bytes each."},
    Setting{
        "router", "continuation", T::integer, "MiB", "64", false, 0, 1e5, "",
        "Memory for requests and answers of streams that the policy lets go on at another engine, shared out "
        "evenly among the event loops; who finds none free in its loop is not continued."},
    Setting{"router", "published", T::number, "decisions/s", "100", false, 0, 1e5, "",
            "Decisions said on the bus while somebody listens, at most."},
    Setting{"router", "drain_grace", T::duration, "s", "30s", false, 0, 3600, "",
            "Streams may finish within this after SIGTERM."},
    Setting{"router", "tls_certificate", T::text, "", "", false, none, none, "",
            "A PEM file, relative to this one: the certificate that clients see, then its chain. Plain HTTP "
            "unless given."},
    Setting{"router", "tls_key", T::text, "", "", false, none, none, "",
            "The certificate's private key, a PEM file without passphrase."},
    Setting{"router", "head_timeout", T::duration, "s", "10s", false, 0.1, 600, "",
            "A request's head is complete within this, from its first byte; else the answer is 408."},
    Setting{
        "router", "body_timeout", T::duration, "s", "30s", false, 0.1, 600, "",
        "The longest pause inside a request's body; it may take no longer than this and a second for each "
        "KiB of it."},
    Setting{"router", "idle_timeout", T::duration, "s", "75s", false, 0.1, 3600, "",
            "A client's connection stays open this long between requests."},
    Setting{"router", "stall_timeout", T::duration, "s", "60s", false, 0.1, 3600, "",
            "A client that takes nothing of its answer for this long is given up, and its engine told."},
    Setting{"router", "cors_origins", T::list, "", "", false, none, none, "",
            "Origins of web pages, as https://host:port, that may call this router from a browser; \"*\" for "
            "all."},
    Setting{"router", "api_keys", T::text, "", "", false, none, none, "",
            "A file of API keys, relative to this one; `signalbox apikey` writes it. Anyone may ask unless "
            "given."},

    Setting{"traces", "endpoint", T::text, "", "", false, none, none, "",
            "Where routers send OpenTelemetry traces (OTLP/HTTP, JSON), such as "
            "http://127.0.0.1:4318/v1/traces. None are made "
            "unless given."},
    Setting{
        "traces", "share", T::number, "", "0.01", false, 0, 1, "",
        "Of the requests that come without a trace; those that come with one are traced if it is recorded."},
    Setting{"traces", "limit", T::number, "traces/s", "100", false, 0.01, 1e5, "",
            "The most that a router makes, whatever clients ask for."},
    Setting{"traces", "token_file", T::text, "", "", false, none, none, "",
            "A file, relative to this one, whose first line the collector is sent as bearer token."},

    Setting{"cluster", "name", T::name, "", "", true, none, none, "", "The cluster's name."},
    Setting{"cluster", "region", T::name, "", "", true, none, none, "", "The region that it lies in."},
    Setting{"cluster", "zone", T::name, "", "", true, none, none, "",
            "The zone of residency that the region lies in."},

    Setting{"link", "from", T::name, "", "", true, none, none, "", "The cluster where requests enter."},
    Setting{"link", "to", T::name, "", "", true, none, none, "",
            "The engine's cluster; the other direction is the same unless it has its own link."},
    Setting{"link", "rtt", T::duration, "s", "", true, 0, 10, "", "The round trip."},

    Setting{"profile", "name", T::name, "", "", true, none, none, "", "What engines call it by."},
    Setting{"profile", "a", T::number, "s", "", true, 1e-6, 10, "", "A step's time by itself."},
    Setting{"profile", "b", T::number, "s", "", true, 0, 10, "", "Added by each sequence in the batch."},
    Setting{"profile", "k", T::number, "s/token", "0", false, 0, 1, "",
            "Added by each token of context in the batch."},
    Setting{"profile", "c", T::number, "s/token", "", true, 0, 1, "",
            "Added by each prompt token that is prefilled."},
    Setting{"profile", "kv_tokens", T::integer, "tokens", "", true, 16, 1e12, "",
            "The size of the KV memory."},
    Setting{"profile", "max_batch", T::integer, "sequences", "", true, 1, 1e6, "",
            "The most sequences in a step."},
    Setting{"profile", "prefill_chunk", T::integer, "tokens", "2048", false, 1, 1e6, "",
            "The most prompt tokens in a step."},

    Setting{"engine", "name", T::name, "", "", true, none, none, "", "The engine's name."},
    Setting{"engine", "cluster", T::name, "", "", true, none, none, "", "The cluster that it stands in."},
    Setting{"engine", "rack", T::name, "", "", false, none, none, "",
            "The rack that it stands in; one of its own unless given."},
    Setting{"engine", "url", T::url, "", "", true, none, none, "",
            "Where it listens, as http://host:port or https://host:port."},
    Setting{"engine", "kind", T::choice, "", "openai", false, none, none,
            "sim|vllm|sglang|llamacpp|tgi|trtllm|openai",
            "The interface that it speaks beside the OpenAI API."},
    Setting{"engine", "models", T::list, "", "", true, none, none, "", "The models that it serves."},
    Setting{"engine", "profile", T::name, "", "", true, none, none, "", "How fast it is declared to be."},
    Setting{"engine", "capacity_scale", T::number, "", "1", false, 0.01, 100, "",
            "How much faster than its profile it is declared to be."},
    Setting{"engine", "metrics_path", T::text, "", "", false, none, none, "",
            "Where its metrics are; the kind's usual path unless given."},
    Setting{"engine", "health_path", T::text, "", "", false, none, none, "",
            "What a probe asks for; the kind's usual path unless given."},
    Setting{"engine", "connections", T::integer, "", "64", false, 1, 10'000, "",
            "Connections that one router keeps open to it at most."},
    Setting{"engine", "kv_events", T::text, "", "", false, none, none, "",
            "The ZeroMQ endpoint where it publishes KV cache events, such as tcp://host:5557; none unless "
            "given."},
    Setting{"engine", "kv_replay", T::text, "", "", false, none, none, "",
            "The ZeroMQ endpoint where it sends such events again, such as tcp://host:5558."},
    Setting{"engine", "tls_name", T::text, "", "", false, none, none, "",
            "https: the DNS name or IP address that its certificate must be valid for; the URL's host unless "
            "given."},
    Setting{"engine", "tls_authorities", T::text, "", "", false, none, none, "",
            "https: a PEM file, relative to this one, of those who may sign its certificate; the system's "
            "unless given."},
    Setting{"engine", "tls_sha256", T::texts, "", "", false, none, none, "",
            "https: SHA-256 fingerprints; its certificate must be one of these, whatever its name and its "
            "signer."},

    Setting{"engine", "api_key_file", T::text, "", "", false, none, none, "",
            "A file, relative to this one, with the key that the engine wants; sent as a bearer token in "
            "place of "
            "the client's."},

    Setting{"engine.simulated", "speed", T::number, "", "1", false, 0.01, 100, "",
            "How much faster than its profile it really is; nobody is told."},
    Setting{"engine.simulated", "kv_tokens", T::integer, "tokens", "0", false, 0, 1e12, "",
            "The real size of its KV memory; 0 is the profile's."},
    Setting{"engine.simulated", "seed", T::integer, "", "1", false, 0, 9e15, "", "The seed of its answers."},
    Setting{"engine.simulated", "tls_certificate", T::text, "", "", false, none, none, "",
            "https: the PEM file of the certificate that it shows, relative to this one."},
    Setting{"engine.simulated", "tls_key", T::text, "", "", false, none, none, "",
            "https: the certificate's private key."},

    Setting{"bus", "id", T::name, "", "", true, none, none, "", "The process's name."},
    Setting{"bus", "publish", T::endpoint, "", "", true, none, none, "", "Where publishers connect."},
    Setting{"bus", "subscribe", T::endpoint, "", "", true, none, none, "", "Where subscribers connect."},
    Setting{"bus", "operator", T::address, "", "", false, none, none, "",
            "Where /healthz, /readyz and /metrics are, on loopback; nowhere unless given."},

    Setting{
        "process", "role", T::choice, "", "", true, none, none,
        "cluster-router|engine-proxy|health-monitor|global-optimizer|feedback-balancer|policy-keeper|auditor",
        "What it is."},
    Setting{"process", "id", T::name, "", "", true, none, none, "", "The process's name."},
    Setting{"process", "cluster", T::name, "", "", false, none, none, "",
            "The cluster that a router or engine-proxy belongs to."},
    Setting{"process", "listen", T::address, "", "", false, none, none, "",
            "Where a cluster-router's clients arrive."},
    Setting{"process", "operator", T::address, "", "", false, none, none, "",
            "Where /healthz, /readyz and /metrics are, on loopback; nowhere unless given."},
    Setting{"process", "engines", T::list, "", "", false, none, none, "",
            "The engines of an engine-proxy; its cluster's unless given."},
};

constexpr std::array key_tables{
    SettingTable{"", false, "Every key of the file."},
    SettingTable{"key", true, "A key: whoever sends it acts for its tenant, within its limits."},
};

constexpr std::array key_rows{
    Setting{"", "salt", T::text, "", "", true, none, none, "",
            "32 hexadecimal digits, mixed into every hash; changing it ends every key."},
    Setting{"key", "name", T::name, "", "", true, none, none, "",
            "What logs and `signalbox apikey` call it."},
    Setting{"key", "hash", T::text, "", "", true, none, none, "",
            "64 hexadecimal digits: BLAKE2b-256 of the key, keyed with the salt. The key itself is nowhere."},
    Setting{"key", "tenant", T::name, "", "", false, none, none, "",
            "The tenant of its requests; unless given, requests name it themselves, as those of a trusted "
            "gateway do."},
    Setting{"key", "criticality", T::choice, "", "critical", false, none, none, "sheddable|standard|critical",
            "The highest criticality that its requests can have."},
    Setting{"key", "requests_per_minute", T::number, "", "0", false, 0, 1e9, "",
            "What each router admits of it; a minute's worth may come at once. 0: no limit."},
    Setting{"key", "tokens_per_minute", T::number, "", "0", false, 0, 1e12, "",
            "The same for tokens of prompts and answers. 0: no limit."},
};

}  // namespace

std::string_view describe(SettingType type) {
  switch (type) {
    case T::text: return "a text";
    case T::name: return "a name of 1 to 64 characters of A-Z a-z 0-9 . _ -, not only dots";
    case T::choice: return "a name from a list";
    case T::integer: return "a whole number";
    case T::number: return "a number";
    case T::duration: return "a duration such as \"250ms\"";
    case T::address: return "an address such as \"127.0.0.1:8080\" or \"+7\"";
    case T::url: return "a URL such as \"http://127.0.0.1:8080\" or \"http://+7\"";
    case T::endpoint: return "an endpoint such as \"tcp://127.0.0.1:8080\" or \"tcp://+7\"";
    case T::list: return "a list of names";
    case T::texts: return "a list of texts";
  }
  return "";
}

std::span<const Setting> settings() { return setting_rows; }
std::span<const SettingTable> setting_tables() { return table_rows; }
FileKind configuration_file() { return {setting_rows, table_rows}; }
FileKind api_keys_file() { return {key_rows, key_tables}; }

}  // namespace signalbox::config
