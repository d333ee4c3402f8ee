#include "tools/top/screen/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace signalbox::top {

using fleet_view::EngineStatus;

namespace {

struct Field {
  std::string_view head;
  std::size_t width;
  bool to_right;
  Sort sort;
  std::size_t from_columns;  ///< shown on terminals at least this wide
};

// The sum of the widths that are always shown, with a space between, is under 80.
constexpr std::array fields{
    Field{"ENGINE", 14, false, Sort::name, 0},      Field{"HEALTH", 9, false, Sort::health, 0},
    Field{"PLANNED LOAD", 16, false, Sort::use, 0}, Field{"RUN", 4, true, Sort::running, 0},
    Field{"WAIT", 4, true, Sort::waiting, 0},       Field{"KV", 4, true, Sort::kv, 0},
    Field{"LATENCY", 7, true, Sort::latency, 0},    Field{"SHARE", 5, true, Sort::weight, 0},
    Field{"FAIL", 4, true, Sort::failed, 0},        Field{"TTFT", 7, true, Sort::fleet, 92},
    Field{"TPOT", 7, true, Sort::fleet, 92},        Field{"SLOW", 5, true, Sort::fleet, 104},
    Field{"EVIDENCE", 16, false, Sort::fleet, 120}, Field{"MODELS", 20, false, Sort::fleet, 140},
};

int badness(const EngineStatus& engine) {
  if (!engine.state) return 3;
  switch (*engine.state) {
    case HealthState::gone: return 5;
    case HealthState::suspect: return 4;
    case HealthState::degraded: return 2;
    case HealthState::draining:
    case HealthState::starting: return 1;
    case HealthState::ready: return 0;
  }
  return 0;
}

double key_of(const EngineStatus& engine, Sort sort) {
  switch (sort) {
    case Sort::health: return badness(engine);
    case Sort::use: return engine.use().value_or(-1);
    case Sort::running: return engine.running.value_or(-1);
    case Sort::waiting: return engine.waiting.value_or(-1);
    case Sort::kv: return engine.kv_usage.value_or(-1);
    case Sort::latency: return engine.latency_s.value_or(-1);
    case Sort::weight: return engine.planned_share;
    case Sort::failed: return engine.failed_rps;
    case Sort::fleet:
    case Sort::name: break;
  }
  return 0;
}

bool passes(const EngineStatus& engine, const std::string& filter) {
  if (filter.empty()) return true;
  const auto has = [&](std::string_view text) { return text.find(filter) != std::string_view::npos; };
  return has(engine.name.str()) || has(engine.cluster.str()) || has(engine.models) ||
         (engine.state && has(name_of(*engine.state)));
}

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.0f}", *value) : "-";
}

Look look_of_use(const std::optional<double>& use) {
  if (!use) return Look::dim;
  return *use > 0.97 ? Look::bad : *use > 0.85 ? Look::warn : Look::good;
}

/// "#######---  71%"; a load without a bar where nothing is planned.
std::string bar_text(const std::optional<double>& use) {
  constexpr std::size_t cells = 10;
  const double share = std::clamp(use.value_or(0), 0.0, 1.0);
  const auto full = static_cast<std::size_t>(std::lround(share * cells));
  return std::string(full, '#') + std::string(cells - full, '-') + right(share_text(use), 6);
}

Span span_of(const Field& field, const EngineStatus& engine) {
  const auto text = [&](std::string value, Look look = Look::plain) {
    return Span{field.to_right ? right(value, field.width) : left(value, field.width), look};
  };
  if (field.head == "ENGINE") return text(engine.name.str(), Look::bold);
  if (field.head == "HEALTH")
    return engine.state ? text(std::string(name_of(*engine.state)), look_of(*engine.state))
                        : text("unknown", Look::warn);
  if (field.head == "PLANNED LOAD") return text(bar_text(engine.use()), look_of_use(engine.use()));
  if (field.head == "RUN") return text(number_text(engine.running));
  if (field.head == "WAIT")
    return text(number_text(engine.waiting), engine.waiting.value_or(0) > 0 ? Look::warn : Look::plain);
  if (field.head == "KV")
    return text(share_text(engine.kv_usage), engine.kv_usage.value_or(0) > 0.9 ? Look::warn : Look::plain);
  if (field.head == "LATENCY") return text(time_text(engine.latency_s));
  if (field.head == "SHARE") return text(share_text(engine.planned_share));
  if (field.head == "FAIL")
    return text(fmt::format("{:.1f}", engine.failed_rps), engine.failed_rps > 0 ? Look::bad : Look::dim);
  if (field.head == "TTFT") return text(time_text(engine.first_byte_s));
  if (field.head == "TPOT") return text(time_text(engine.tpot_s));
  if (field.head == "SLOW") return text(engine.slowness ? fmt::format("{:.2f}", *engine.slowness) : "-");
  if (field.head == "EVIDENCE") return text(engine.evidence);
  return text(engine.models);
}

}  // namespace

std::string left(std::string_view text, std::size_t width) {
  return fmt::format("{:<{}}", text.substr(0, width), width);
}
std::string right(std::string_view text, std::size_t width) {
  return fmt::format("{:>{}}", text.substr(0, width), width);
}

std::string time_text(const std::optional<double>& seconds) {
  if (!seconds) return "-";
  if (*seconds < 0.0995) return fmt::format("{:.1f}ms", *seconds * 1e3);
  if (*seconds < 0.9995) return fmt::format("{:.0f}ms", *seconds * 1e3);
  return fmt::format("{:.2f}s", *seconds);
}

std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}%", *share * 100) : "-";
}

Look look_of(HealthState state) {
  switch (state) {
    case HealthState::ready: return Look::good;
    case HealthState::degraded:
    case HealthState::draining:
    case HealthState::starting: return Look::warn;
    case HealthState::suspect:
    case HealthState::gone: return Look::bad;
  }
  return Look::plain;
}

std::vector<EngineStatus> chosen_engines(const fleet_view::FleetView& view, const Ui& ui, Instant now) {
  std::vector<EngineStatus> out = engine_statuses(view, now);
  std::erase_if(out, [&](const EngineStatus& engine) { return !passes(engine, ui.filter); });
  if (ui.sort == Sort::name)
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  else if (ui.sort != Sort::fleet)
    std::stable_sort(out.begin(), out.end(),
                     [&](const auto& a, const auto& b) { return key_of(a, ui.sort) > key_of(b, ui.sort); });
  if (ui.reverse) std::reverse(out.begin(), out.end());
  if (ui.by_cluster)
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.cluster < b.cluster; });
  return out;
}

Line engine_head(const Ui& ui, std::size_t columns) {
  Line out;
  for (const Field& field : fields) {
    if (columns < field.from_columns) continue;
    std::string head(field.head);
    if (ui.sort == field.sort && ui.sort != Sort::fleet) head += ui.reverse ? "^" : "v";
    out.push_back({(field.to_right ? right(head, field.width) : left(head, field.width)) + " ", Look::head});
  }
  return out;
}

Line engine_line(const EngineStatus& engine, std::size_t columns) {
  Line out;
  for (const Field& field : fields) {
    if (columns < field.from_columns) continue;
    out.push_back(span_of(field, engine));
    out.push_back({" "});
  }
  return out;
}

Line cluster_line(const std::vector<EngineStatus>& engines, std::size_t first, std::size_t columns) {
  const ClusterName& cluster = engines[first].cluster;
  std::size_t count = 0, ready = 0;
  double load = 0, capacity = 0, served = 0;
  for (const EngineStatus& engine : engines) {
    if (engine.cluster != cluster) continue;
    ++count;
    ready += engine.state == HealthState::ready ? 1 : 0;
    load += engine.planned_load.value_or(0), capacity += engine.capacity.value_or(0);
    served += engine.served_rps;
  }
  const auto use = capacity > 0 ? std::optional(load / capacity) : std::nullopt;
  const std::string text =
      fmt::format("{}: {} engines, {} ready, load {:.2f} of {:.2f} ({}), {:.1f} served/s", cluster, count,
                  ready, load, capacity, share_text(use), served);
  return {{left(text, columns), Look::dim}};
}

}  // namespace signalbox::top
