#include "tools/simulate/scenario_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "cluster-config/load/load.hpp"
#include "messages/base/duration_text.hpp"
#include "messages/base/enum_names.hpp"
#include "messages/base/nearest.hpp"
#include "messages/base/words.hpp"
#include "tools/simulate/trace_file.hpp"

namespace signalbox::simulate {
namespace {

constexpr std::size_t most_scenario_bytes = 1 << 20;

/// A table of the file whose keys are all read, or told as mistakes. The first mistake stays.
class Section {
 public:
  Section(const toml::table& table, const std::string& file, Status& status)
      : table_(table), file_(file), status_(status) {}

  template <class Target>
  void read(std::string_view key, Target& out, bool required = false) {
    known_.push_back(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) {
      if (required) mistake(table_.source(), fmt::format("'{}' is missing", key));
      return;
    }
    if (!take(*node, out)) mistake(node->source(), fmt::format("'{}' is not {}", key, what_of(out)));
  }
  const toml::node* child(std::string_view key) {
    known_.push_back(key);
    return table_.get(key);
  }
  /// Call it last.
  void refuse_unknown() {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      mistake(key.source(), fmt::format("there is no key '{}' here", key.str()),
              name_hint(key.str(), known_));
    }
  }
  void mistake(const toml::source_region& where, std::string what, std::string hint = {}) {
    if (status_)
      status_ = invalid(std::move(what), fmt::format("{}:{}:{}", file_, where.begin.line, where.begin.column),
                        std::move(hint));
  }
  const toml::source_region& source() const { return table_.source(); }

 private:
  static bool take(const toml::node& node, std::string& out) {
    const auto value = node.value_exact<std::string>();
    if (value) out = *value;
    return value.has_value();
  }
  static bool take(const toml::node& node, double& out) {
    const auto value = node.value<double>();
    if (value) out = *value;
    return value.has_value();
  }
  template <std::unsigned_integral T>
  static bool take(const toml::node& node, T& out) {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > std::numeric_limits<T>::max())
      return false;
    out = static_cast<T>(*value);
    return true;
  }
  static bool take(const toml::node& node, Duration& out) {
    const auto text = node.value_exact<std::string>();
    const auto duration = text ? parse_duration(*text) : Result<Duration>(fail(ErrorKind::invalid, ""));
    if (duration) out = *duration;
    return duration.has_value();
  }
  template <class Tag>
  static bool take(const toml::node& node, Name<Tag>& out) {
    const auto text = node.value_exact<std::string>();
    if (text) out = Name<Tag>(*text);
    return !out.empty();
  }

  static const char* what_of(const std::string&) { return "a text"; }
  static const char* what_of(double) { return "a number"; }
  template <std::unsigned_integral T>
  static const char* what_of(T) {
    return "a whole number from 0 up";
  }
  static const char* what_of(Duration) { return "a duration such as \"1.5s\""; }
  template <class Tag>
  static const char* what_of(const Name<Tag>&) {
    return "a plain name";
  }

  const toml::table& table_;
  const std::string& file_;
  Status& status_;
  std::vector<std::string_view> known_;
};

template <class E>
std::string name_list() {
  return fmt::format("use one of {}", fmt::join(names_of<E>(), ", "));
}

/// One file being read.
struct Reading {
  const std::string& file;
  std::filesystem::path folder;
  Scenario scenario = {};
  Status status = {};

  Section section(const toml::table& table) { return {table, file, status}; }
  std::string path(const std::string& relative) const {
    return (folder / relative).lexically_normal().string();
  }
  void each(const toml::table& top, std::string_view name, void (Reading::*read)(const toml::table&)) {
    const toml::array* tables = top[name].as_array();
    if (tables == nullptr) return;
    for (const toml::node& node : *tables)
      if (const toml::table* table = node.as_table()) (this->*read)(*table);
  }

  void read_top(const toml::table& top);
  void read_control(const toml::table& table);
  void read_engine(const toml::table& table);
  void read_load(const toml::table& table);
  void read_event(const toml::table& table);
  void check_event(Section& section, const Happening& happening);
};

void Reading::read_top(const toml::table& top) {
  Section section = this->section(top);
  std::string topology, policy, rule;
  std::uint64_t routers = 0;
  section.read("name", scenario.name);
  section.read("topology", topology, true);
  section.read("policy", policy);
  section.read("seed", scenario.seed);
  section.read("duration", scenario.duration);
  section.read("warmup", scenario.warmup);
  section.read("sample", scenario.sample);
  section.read("network_jitter", scenario.network_jitter);
  section.read("step_noise", scenario.step_noise);
  section.read("solve_time", scenario.solve_time);
  section.read("rule", rule);
  section.read("routers", routers);
  for (const std::string_view key : {"control", "engine", "load", "event"}) section.child(key);
  section.refuse_unknown();
  if (!status) return;
  if (scenario.sample <= Duration::zero() || scenario.warmup >= scenario.duration)
    return section.mistake(section.source(),
                           "the warm-up is not shorter than the duration, or nothing is sampled");

  if (!rule.empty()) {
    const auto known = value_of<RoutingRule>(rule);
    if (!known)
      return section.mistake(top["rule"].node()->source(), fmt::format("'{}' is no rule", rule),
                             name_list<RoutingRule>());
    scenario.rule = *known;
  }
  auto loaded = config::load(path(topology));
  if (!loaded) {
    status = invalid(loaded.error().report);
    return;
  }
  scenario.config = std::move(loaded->config);
  scenario.policy = std::move(loaded->policy_text);
  if (routers > 0) use_routers(scenario, routers);
  if (policy.empty()) return;
  auto other = config::load_policy(path(policy));
  if (other)
    scenario.policy = std::move(other->text);
  else
    status = invalid(other.error().report);
}

void Reading::read_control(const toml::table& table) {
  Section section = this->section(table);
  config::Control& control = scenario.config.control;
  section.read("period", control.period);
  section.read("gain", control.feedback_gain);
  section.read("smoothing", control.feedback_smoothing);
  section.read("delay", control.feedback_delay);
  section.refuse_unknown();
}

/// What is so, whatever the topology tells the fleet.
void Reading::read_engine(const toml::table& table) {
  Section section = this->section(table);
  EngineName name;
  double speed = 1;
  section.read("name", name, true);
  section.read("speed", speed, true);
  section.refuse_unknown();
  auto& engines = scenario.config.engines;
  const auto engine =
      std::find_if(engines.begin(), engines.end(), [&](const config::Engine& e) { return e.name == name; });
  if (engine == engines.end())
    return section.mistake(section.source(), fmt::format("the topology has no engine '{}'", name));
  if (!(speed > 0)) return section.mistake(section.source(), "an engine's speed is positive");
  if (!engine->simulated) engine->simulated.emplace();
  engine->simulated->speed = speed;
}

void Reading::read_load(const toml::table& table) {
  Section section = this->section(table);
  Load load;
  std::string asked, trace;
  double speed = 1;
  std::uint64_t most = UINT64_MAX;
  Duration bucket{};
  section.read("name", load.name, true);
  section.read("cluster", load.cluster, true);
  section.read("tenant", load.tenant);
  section.read("model", load.model, true);
  section.read("asked", asked);
  section.read("rate", load.rate_per_s);
  section.read("prompt_tokens", load.prompt.mean_tokens);
  section.read("prompt_sigma", load.prompt.sigma);
  section.read("output_tokens", load.output.mean_tokens);
  section.read("output_sigma", load.output.sigma);
  section.read("prefixes", load.prefixes);
  section.read("prefix_tokens", load.prefix_tokens);
  section.read("trace", trace);
  section.read("trace_speed", speed);
  section.read("trace_rows", most);
  section.read("trace_bucket", bucket);
  section.refuse_unknown();
  if (!asked.empty()) {
    load.asked = value_of<Criticality>(asked);
    if (!load.asked)
      section.mistake(table["asked"].node()->source(), fmt::format("'{}' is no criticality", asked));
  }
  if (scenario.config.find_cluster(load.cluster) == nullptr && status)
    section.mistake(section.source(), fmt::format("the topology has no cluster '{}'", load.cluster));
  if (!trace.empty() && status) {
    auto rows = read_trace(path(trace), {speed, most, bucket});
    if (rows)
      load.trace = std::move(*rows);
    else
      status = tl::unexpected(rows.error());
  } else if (status && (load.rate_per_s < 0 || load.prompt.mean_tokens < 1)) {
    section.mistake(section.source(), "a load needs a trace, or a rate and prompt_tokens");
  }
  scenario.loads.push_back(std::move(load));
}

void Reading::read_event(const toml::table& table) {
  Section section = this->section(table);
  Happening happening;
  std::string kind;
  section.read("at", happening.at, true);
  section.read("kind", kind, true);
  section.read("engine", happening.engine);
  section.read("load", happening.load);
  section.read("from", happening.from);
  section.read("to", happening.to);
  section.read("process", happening.process);
  section.read("peer", happening.peer);
  section.read("value", happening.value, true);
  section.refuse_unknown();
  const auto known = value_of<HappeningKind>(kind);
  if (!known)
    return section.mistake(section.source(), fmt::format("'{}' is no kind of event", kind),
                           name_list<HappeningKind>());
  happening.kind = *known;
  check_event(section, happening);
  scenario.happenings.push_back(std::move(happening));
}

void Reading::check_event(Section& section, const Happening& h) {
  const config::Config& config = scenario.config;
  const bool of_engine =
      h.kind == HappeningKind::slow || h.kind == HappeningKind::freeze || h.kind == HappeningKind::down;
  if (of_engine && config.find_engine(h.engine) == nullptr)
    section.mistake(section.source(), fmt::format("the topology has no engine '{}'", h.engine));
  const bool of_process = h.kind == HappeningKind::kill || h.kind == HappeningKind::pause ||
                          h.kind == HappeningKind::cut || h.kind == HappeningKind::disk_full ||
                          h.kind == HappeningKind::solver;
  if (of_process && config.find_process(h.process) == nullptr)
    section.mistake(section.source(), fmt::format("the topology has no process '{}'", h.process));
  if (!h.peer.empty() && config.find_process(h.peer) == nullptr)
    section.mistake(section.source(), fmt::format("the topology has no process '{}'", h.peer));
  const bool is_share =
      h.kind == HappeningKind::loss || h.kind == HappeningKind::repeat || h.kind == HappeningKind::overtake;
  if (is_share && h.value > 1) section.mistake(section.source(), "a share is at most 1");
  const bool of_link = h.kind == HappeningKind::network || h.kind == HappeningKind::tell_network;
  if (of_link && (config.find_cluster(h.from) == nullptr || config.find_cluster(h.to) == nullptr))
    section.mistake(section.source(), "'from' and 'to' must be clusters of the topology");
  if (h.kind == HappeningKind::slow && !(h.value > 0))
    section.mistake(section.source(), "an engine takes a positive number of times as long");
  if (h.value < 0) section.mistake(section.source(), "'value' is negative");
}

}  // namespace

Result<Scenario> read_scenario(const std::string& file) {
  const auto text = config::read_text_file(file, most_scenario_bytes);
  if (!text) return tl::unexpected(text.error());
  toml::table top;
  try {
    top = toml::parse(*text, file);
  } catch (const toml::parse_error& error) {
    return invalid(std::string(error.description()),
                   fmt::format("{}:{}:{}", file, error.source().begin.line, error.source().begin.column));
  }
  Reading reading{.file = file, .folder = std::filesystem::path(file).parent_path()};
  reading.read_top(top);
  if (const toml::table* control = top["control"].as_table(); control && reading.status)
    reading.read_control(*control);
  if (reading.status) reading.each(top, "engine", &Reading::read_engine);
  if (reading.status) reading.each(top, "load", &Reading::read_load);
  if (reading.status) reading.each(top, "event", &Reading::read_event);
  if (!reading.status) return tl::unexpected(reading.status.error());
  if (reading.scenario.loads.empty()) return invalid("there is no [[load]]", file);
  std::stable_sort(reading.scenario.happenings.begin(), reading.scenario.happenings.end(),
                   [](const Happening& a, const Happening& b) { return a.at < b.at; });
  if (reading.scenario.name.empty()) reading.scenario.name = std::filesystem::path(file).stem().string();
  return std::move(reading.scenario);
}

}  // namespace signalbox::simulate
