#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cluster-config/schema/address.hpp"
#include "cluster-config/schema/checks.hpp"
#include "cluster-config/schema/reader.hpp"
#include "messages/base/duration_text.hpp"

namespace signalbox::config {
namespace {

std::string_view folder_of(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : file.substr(0, slash + 1);
}

struct Paths {
  std::string_view metrics, health;
};
Paths usual_paths(EngineKind kind) {
  switch (kind) {
    case EngineKind::openai: return {"", ""};
    case EngineKind::trtllm: return {"/prometheus/metrics", "/health"};
    default: return {"/metrics", "/health"};
  }
}

/// scheme://host[:port], as the Fetch standard serialises it.
bool is_origin(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0 || scheme + 3 == text.size()) return false;
  return std::ranges::none_of(text.substr(scheme + 3), [](char c) {
    return c == '/' || c == '*' || c == '@' || static_cast<unsigned char>(c) <= ' ';
  });
}

class Builder {
 public:
  Builder(std::string_view text, std::string_view file, const Overrides& overrides,
          std::vector<Mistake>& mistakes)
      : overrides_(overrides), mistakes_(mistakes), document_(text, mistakes) {
    config_.file = file;
  }

  bool is_toml() const { return document_.is_toml(); }

  Config run() {
    top();
    control();
    intervals();
    router();
    traces();
    for (const Section& s : document_.tables("cluster"))
      config_.clusters.push_back(
          {s.name<ClusterName>("name"), s.name<DomainName>("region"), s.name<DomainName>("zone"), s.place()});
    for (const Section& s : document_.tables("link"))
      config_.links.push_back(
          {s.name<ClusterName>("from"), s.name<ClusterName>("to"), s.duration("rtt"), s.place()});
    for (const Section& s : document_.tables("profile")) profile(s);
    for (const Section& s : document_.tables("engine")) engine(s);
    for (const Section& s : document_.tables("bus"))
      config_.buses.push_back({s.name<ProcessName>("id"), s.address("publish"), s.address("subscribe"),
                               s.address("operator"), s.place()});
    for (const Section& s : document_.tables("process")) process(s);
    return std::move(config_);
  }

 private:
  void top();
  void control();
  void coordination(const Section& s);
  void intervals();
  void router();
  void traces();
  void profile(const Section& s);
  void engine(const Section& s);
  void process(const Section& s);
  std::string identity(const Section& s, const Engine& e);
  std::string path(const std::string& text) const {
    return text.empty() || text.starts_with('/') ? text : fmt::format("{}{}", folder_of(config_.file), text);
  }

  const Overrides& overrides_;
  std::vector<Mistake>& mistakes_;
  Document document_;
  Config config_;
};

void Builder::top() {
  const Section s = document_.top();
  config_.fleet = s.text("fleet");
  config_.fleet_epoch = s.integer("fleet_epoch");
  config_.security = value_of<Security>(s.text("security")).value_or(Security::curve);
  const std::string state = s.text("state_dir"), keys = s.text("keys_dir"), policy = s.text("policy");
  config_.state_dir = overrides_.state_dir.value_or(
      state.empty() ? fmt::format("{}/{}", default_state_root, config_.fleet) : state);
  config_.keys_dir = overrides_.keys_dir.value_or(keys.empty() ? config_.state_dir + "/keys" : keys);
  config_.policy = path(policy);
  config_.port_base = overrides_.port_base.value_or(static_cast<std::uint16_t>(s.integer("port_base")));
  document_.set_port_base(config_.port_base);
}

void Builder::control() {
  const Section s = document_.table("control");
  Control& c = config_.control;
  c.kind = value_of<ControlKind>(s.text("kind")).value_or(ControlKind::optimizer);
  c.period = s.duration("period");
  c.leader_timeout = s.duration("leader_timeout");
  c.feedback_gain = s.number("feedback_gain");
  c.feedback_smoothing = s.number("feedback_smoothing");
  c.feedback_delay = static_cast<std::uint32_t>(s.integer("feedback_delay"));
  c.solve_iterations = static_cast<std::uint32_t>(s.integer("solve_iterations"));
  c.solve_memory_mib = s.integer("solve_memory");
  coordination(s);
}

void Builder::coordination(const Section& s) {
  Control& c = config_.control;
  c.coordination = value_of<Coordination>(s.text("coordination")).value_or(Coordination::embedded);
  c.lease = s.duration("lease");
  c.etcd_authorities = path(s.text("etcd_authorities"));
  c.etcd_certificate = path(s.text("etcd_certificate"));
  c.etcd_key = path(s.text("etcd_key"));
  for (const std::string& member : s.list("etcd"))
    if (auto url = resolve_url(member, config_.port_base))
      c.etcd.push_back(*std::move(url));
    else
      s.mistake("etcd", url.error().what, url.error().hint);
  if (c.coordination == Coordination::etcd && c.etcd.empty())
    s.mistake("coordination", "'control.coordination' is etcd, and no member of etcd is named",
              "write etcd = [\"http://HOST:2379\", ...]");
  if (s.has("etcd_certificate") != s.has("etcd_key"))
    s.mistake("etcd_certificate",
              "one of 'control.etcd_certificate' and 'control.etcd_key' without the other",
              "give both files, or neither");
}

void Builder::intervals() {
  const Section s = document_.table("intervals");
  Intervals& i = config_.intervals;
  i = {s.duration("scrape"), s.duration("beat"),       s.duration("report"),
       s.duration("share"),  s.duration("keep_alive"), s.duration("watchdog")};
  if (config_.control.leader_timeout <= 2 * i.beat)
    document_.table("control").mistake(
        "leader_timeout", "'control.leader_timeout' is at most two beats long",
        fmt::format("a beat comes each {}: one that is late must not depose a leader",
                    duration_text(i.beat)));
}

void Builder::router() {
  const Section s = document_.table("router");
  config_.router = {s.integer("body_limit"),
                    static_cast<std::uint32_t>(s.integer("connections")),
                    static_cast<std::uint32_t>(s.integer("loops")),
                    s.integer("decisions"),
                    s.integer("recent_decisions"),
                    s.integer("continuation"),
                    s.number("published"),
                    s.duration("drain_grace"),
                    path(s.text("tls_certificate")),
                    path(s.text("tls_key")),
                    s.duration("head_timeout"),
                    s.duration("body_timeout"),
                    s.duration("idle_timeout"),
                    s.duration("stall_timeout"),
                    s.list("cors_origins"),
                    path(s.text("api_keys"))};
  if (s.has("tls_certificate") != s.has("tls_key"))
    s.mistake("tls_certificate", "one of 'router.tls_certificate' and 'router.tls_key' without the other",
              "give both files, or neither");
  for (const std::string& origin : config_.router.cors_origins)
    if (origin != "*" && !is_origin(origin))
      s.mistake("cors_origins", fmt::format("'{}' is not an origin", origin),
                "write it as a browser sends it, such as https://app.example or http://localhost:3000");
}

void Builder::traces() {
  const Section s = document_.table("traces");
  Traces& t = config_.traces;
  t = {s.text("endpoint"), s.number("share"), s.number("limit"), path(s.text("token_file"))};
  if (s.has("endpoint") && !t.endpoint.starts_with("http://") && !t.endpoint.starts_with("https://"))
    s.mistake("endpoint", fmt::format("'{}' is not an http or https URL", t.endpoint),
              "OTLP collectors listen at http://HOST:4318/v1/traces unless told otherwise");
}

void Builder::profile(const Section& s) {
  config_.profiles.push_back({s.text("name"), s.number("a"), s.number("b"), s.number("k"), s.number("c"),
                              s.integer("kv_tokens"), static_cast<std::uint32_t>(s.integer("max_batch")),
                              static_cast<std::uint32_t>(s.integer("prefill_chunk")), s.place()});
}

void Builder::engine(const Section& s) {
  Engine e;
  e.name = s.name<EngineName>("name");
  e.cluster = s.name<ClusterName>("cluster");
  e.rack = s.has("rack") ? s.name<DomainName>("rack") : DomainName(e.name.str());
  e.url = s.address("url");
  e.kind = value_of<EngineKind>(s.text("kind")).value_or(EngineKind::openai);
  e.models = s.names<ModelName>("models");
  std::ranges::sort(e.models);
  e.profile = s.text("profile");
  e.metrics_path = s.has("metrics_path") ? s.text("metrics_path") : usual_paths(e.kind).metrics;
  e.health_path = s.has("health_path") ? s.text("health_path") : usual_paths(e.kind).health;
  for (const char* key : {"metrics_path", "health_path"})
    if (s.has(key) && !s.text(key).starts_with('/'))
      s.mistake(key, fmt::format("'{}' is not a path", key), "begin it with /");
  e.kv_events = s.text("kv_events");
  e.kv_replay = s.text("kv_replay");
  for (const char* key : {"kv_events", "kv_replay"})
    if (s.has(key) && !s.text(key).starts_with("tcp://") && !s.text(key).starts_with("ipc://"))
      s.mistake(key, fmt::format("'{}' is not a ZeroMQ endpoint", s.text(key)),
                "write tcp://host:port, or ipc:// and a path");
  if (s.has("kv_replay") && !s.has("kv_events"))
    s.mistake("kv_replay", "'kv_replay' without 'kv_events'", "say where the events come from, too");
  e.connections = static_cast<std::uint32_t>(s.integer("connections"));
  e.capacity_scale = s.number("capacity_scale");
  e.tls_identity = identity(s, e);
  e.tls_authorities = path(s.text("tls_authorities"));
  e.api_key_file = path(s.text("api_key_file"));
  e.place = s.place();
  const auto row = std::ranges::find(config_.profiles, e.profile, &Profile::name);
  if (row != config_.profiles.end()) e.profile_row = static_cast<std::size_t>(row - config_.profiles.begin());
  if (const auto simulated = s.inner("simulated")) {
    e.simulated =
        Simulated{simulated->number("speed"), simulated->integer("kv_tokens"), simulated->integer("seed"),
                  path(simulated->text("tls_certificate")), path(simulated->text("tls_key"))};
    const bool shows = simulated->has("tls_certificate") && simulated->has("tls_key");
    if (!e.url.empty() && shows != e.url.starts_with("https://"))
      s.mistake("simulated", fmt::format("engine '{}' is simulated at {}", e.name, e.url),
                "with https it needs simulated.tls_certificate and tls_key, with http neither");
    if (e.simulated->kv_tokens == 0 && row != config_.profiles.end()) e.simulated->kv_tokens = row->kv_tokens;
  }
  config_.engines.push_back(std::move(e));
}

/// What an engine's certificate must be; nothing for plain HTTP.
std::string Builder::identity(const Section& s, const Engine& e) {
  if (e.url.empty()) return {};  // that was said
  if (!e.url.starts_with("https://")) {
    for (const char* key : {"tls_name", "tls_authorities", "tls_sha256"})
      if (s.has(key))
        s.mistake(key, fmt::format("'engine.{}' of engine '{}', whose URL is not https", key, e.name),
                  "write https:// in its url, or leave this out");
    return {};
  }
  std::vector<std::string> pins = s.list("tls_sha256");
  if (pins.empty()) {
    const std::string_view address = host_and_port(e.url);
    std::string_view host = address.substr(0, address.rfind(':'));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    return fmt::format("name:{}", s.has("tls_name") ? s.text("tls_name") : std::string(host));
  }
  for (const char* key : {"tls_name", "tls_authorities"})
    if (s.has(key))
      s.mistake(key, fmt::format("'engine.{}' beside 'engine.tls_sha256'", key),
                "a fingerprint says all about a certificate: leave one of them out");
  for (std::string& pin : pins) {
    std::string digits = pin;
    std::erase(digits, ':');  // openssl prints colons and capitals
    for (char& digit : digits)
      digit = digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit;
    if (const auto read = Digest::from_hex(digits))
      pin = read->hex();
    else
      s.mistake("tls_sha256", fmt::format("'{}' is not a SHA-256 fingerprint", pin.substr(0, 80)),
                "write 64 hexadecimal digits, as `openssl x509 -noout -fingerprint -sha256` prints them");
  }
  if (pins.size() > 3)
    s.mistake("tls_sha256", fmt::format("{} fingerprints", pins.size()),
              "at most 3: now, next and one spare");
  return fmt::format("sha256:{}", fmt::join(pins, ","));
}

void Builder::process(const Section& s) {
  Process p{s.text("role"),
            s.name<ProcessName>("id"),
            s.name<ClusterName>("cluster"),
            s.address("listen"),
            s.address("operator"),
            s.names<EngineName>("engines"),
            s.place()};
  if (p.role == "cluster-router" && !s.has("listen"))
    s.mistake("listen", fmt::format("router '{}' listens nowhere", p.id), "write listen = \"HOST:PORT\"");
  if (p.role == "engine-proxy" && p.engines.empty())
    for (const Engine& engine : config_.engines)
      if (engine.cluster == p.cluster) p.engines.push_back(engine.name);
  config_.processes.push_back(std::move(p));
}

/// Adds the direction that is not declared.
void complete_links(std::vector<Link>& links) {
  const std::vector<Link> declared = links;
  for (const Link& link : declared) {
    const bool has_reverse = std::ranges::any_of(
        declared, [&link](const Link& other) { return other.from == link.to && other.to == link.from; });
    if (!has_reverse) links.push_back({link.to, link.from, link.rtt, link.place});
  }
}

}  // namespace

Parsed parse_config(std::string_view text, std::string_view file, const Overrides& overrides) {
  Parsed out;
  constexpr std::size_t most_bytes = 16 << 20;
  if (text.size() > most_bytes) {
    out.mistakes.push_back({{1, 1}, fmt::format("a file of {} bytes", text.size()), "keep it under 16 MiB"});
    return out;
  }
  Builder builder(text, file, overrides, out.mistakes);
  if (!builder.is_toml()) return out;
  Config config = builder.run();
  check_config(config, out.mistakes);
  std::ranges::stable_sort(out.mistakes, {},
                           [](const Mistake& m) { return std::tuple(m.place.line, m.place.column); });
  if (!out.mistakes.empty()) return out;
  complete_links(config.links);
  config.digest = digest_of(summary(config));
  out.config = std::move(config);
  return out;
}

}  // namespace signalbox::config
