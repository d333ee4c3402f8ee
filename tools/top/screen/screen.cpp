#include "tools/top/screen/screen.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/fleet_view/show.hpp"
#include "tools/top/screen/engines.hpp"

namespace signalbox::top {

using fleet_view::FleetView;
using fleet_view::Table;

namespace {

constexpr std::string_view keys_line =
    "Tab view  s sort  r reverse  / filter  Enter look closer  e explain  ? help  q quit";

const std::vector<std::string> help_lines{
    "Tab      next view: engines, demand, routers, processes, alerts",
    "up down  choose a row (also k, j, PageUp, PageDown, Home, End)",
    "Enter    look closer at the chosen engine; Esc goes back",
    "s or >   sort by the next column; S or < by the one before; r reverses",
    "c        engines under their clusters, or in one list",
    "/        show only engines whose name, cluster, model or health holds a text",
    "e        explain a decision by its id (x-signalbox-decision of an answer)",
    "space    stop and go on",
    "q        end",
    "",
    "PLANNED LOAD  engine time that the plan gives it, over what may be planned",
    "SHARE         its part of all planned requests",
    "LATENCY       mean end-to-end time of requests that ended in the last report",
};

Line plain(std::string text, Look look = Look::plain) { return {{std::move(text), look}}; }

/// Summary of the fleet in two lines.
void add_summary(const FleetView& view, std::string_view title, const Ui& ui, Instant now,
                 std::vector<Line>& out) {
  const fleet_view::FleetStatus fleet = fleet_status(view, now);
  Line first{{"signalbox top ", Look::bold}, {fmt::format("{}  ", title)}};
  first.push_back({fmt::format("{} engines, {} serving", fleet.engines, fleet.serving)});
  if (fleet.gone > 0) first.push_back({fmt::format(", {} gone", fleet.gone), Look::bad});
  if (fleet.leader.empty())
    first.push_back({"  no leader", Look::bad});
  else
    first.push_back({fmt::format("  leader {} term {}", fleet.leader, fleet.term)});
  if (fleet.holding) first.push_back({" holding", Look::warn});
  if (ui.paused) first.push_back({"  stopped", Look::warn});
  out.push_back(std::move(first));
  Line second;
  second.push_back({fmt::format("alerts {}  ", fleet.alerts), fleet.alerts > 0 ? Look::bad : Look::plain});
  second.push_back({fmt::format("demand {:.1f}/s  ", fleet.offered_rps)});
  second.push_back(
      {fmt::format("shed {:.1f}/s  ", fleet.shed_rps), fleet.shed_rps > 0 ? Look::warn : Look::plain});
  second.push_back(
      {fmt::format("in flight {:.0f}  latency {}  ", fleet.inflight, time_text(fleet.latency_s))});
  const bool old = fleet.plan_age_s.value_or(0) > 5;
  second.push_back(
      {fmt::format("plan {} old  ", time_text(fleet.plan_age_s)), old ? Look::bad : Look::plain});
  second.push_back({fmt::format("ttft {}", time_text(fleet.first_byte_s))});
  out.push_back(std::move(second));
}

/// A list with a chosen row, scrolled so that it can be seen. `above[i]` is drawn before row i.
void add_list(std::vector<Line> rows, std::vector<std::pair<std::size_t, Line>> above, Ui& ui,
              std::size_t lines, Screen& out) {
  out.rows = rows.size();
  out.page = lines;
  ui.selected = rows.empty() ? 0 : std::min(ui.selected, rows.size() - 1);
  const auto height = [&](std::size_t from, std::size_t to) {  // of rows [from, to] with what is above them
    const auto heads = std::count_if(above.begin(), above.end(),
                                     [&](const auto& a) { return a.first >= from && a.first <= to; });
    return to - from + 1 + static_cast<std::size_t>(heads);
  };
  ui.first = std::min(ui.first, ui.selected);
  while (ui.first < ui.selected && height(ui.first, ui.selected) > lines) ++ui.first;
  const std::size_t end = out.lines.size() + lines;
  for (std::size_t i = ui.first; i < rows.size() && out.lines.size() < end; ++i) {
    for (auto& [at, line] : above)
      if (at == i && out.lines.size() + 1 < end) out.lines.push_back(line);
    if (i == ui.selected)
      for (Span& span : rows[i]) span.look = Look::chosen;
    out.lines.push_back(std::move(rows[i]));
  }
}

void add_engines(const FleetView& view, Ui& ui, Instant now, Size size, std::size_t lines, Screen& out) {
  const auto engines = chosen_engines(view, ui, now);
  out.lines.push_back(engine_head(ui, size.columns));
  std::vector<Line> rows;
  std::vector<std::pair<std::size_t, Line>> above;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    if (ui.by_cluster && (i == 0 || engines[i].cluster != engines[i - 1].cluster))
      above.emplace_back(i, cluster_line(engines, i, size.columns));
    rows.push_back(engine_line(engines[i], size.columns));
    out.shown.push_back(engines[i].name);
  }
  if (engines.empty())
    out.lines.push_back(
        plain(ui.filter.empty() ? "no engine is known yet" : "no engine passes the filter", Look::dim));
  add_list(std::move(rows), std::move(above), ui, lines - 1, out);
}

/// A table's lines, the first as its head.
void add_table(const std::vector<Table>& tables, Ui& ui, std::size_t lines, Screen& out) {
  std::vector<Line> rows;
  bool first = true;
  std::string text = as_text(tables);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    rows.push_back(plain(text.substr(0, end), first ? Look::bold : Look::plain));
    first = false;
    text.erase(0, end == std::string::npos ? text.size() : end + 1);
  }
  add_list(std::move(rows), {}, ui, lines, out);
}

Table demand_table(const FleetView& view) {
  Table out{"demand",
            {{"cluster"},
             {"class"},
             {"offered/s", 1},
             {"shed/s", 1},
             {"done/s", 1},
             {"planned/s", 1},
             {"admit", 2},
             {"prompt tok/s", 0},
             {"output tok/s", 0}},
            {}};
  for (const auto& row : demand_statuses(view))
    out.rows.push_back({row.cluster.str(), row.request_class, row.offered_rps, row.shed_rps, row.finished_rps,
                        fleet_view::maybe(row.planned_rps), fleet_view::maybe(row.admit), row.prompt_tokens_s,
                        row.output_tokens_s});
  return out;
}

Table router_table(const FleetView& view, Instant now) {
  Table out{"routers",
            {{"router"}, {"cluster"}, {"ready"}, {"snapshot"}, {"receipt"}, {"beat age", 1}, {"state"}},
            {}};
  for (const auto& [id, beat] : view.beats) {
    if (beat.message.role != Role::cluster_router) continue;
    const auto receipt = view.receipts.find(id);
    out.rows.push_back(
        {id.str(), beat.message.cluster.str(), beat.message.ready, fmt::format("{}", beat.message.snapshot),
         receipt == view.receipts.end() ? fleet_view::Cell()
                                        : fleet_view::cell(name_of(receipt->second.message.reason)),
         to_seconds(beat.age(now)), beat.message.state});
  }
  return out;
}

Table process_table(const FleetView& view, Instant now) {
  Table out{
      "processes",
      {{"process"}, {"role"}, {"ready"}, {"MiB", 0}, {"lag ms", 1}, {"lost"}, {"beat age", 1}, {"state"}},
      {}};
  for (const auto& [id, beat] : view.beats)
    out.rows.push_back({id.str(), fleet_view::cell(name_of(beat.message.role)), beat.message.ready,
                        static_cast<double>(beat.message.resident_bytes) / 1048576.0,
                        to_seconds(beat.message.loop_lag) * 1e3,
                        fleet_view::count(beat.message.messages_lost), to_seconds(beat.age(now)),
                        beat.message.state});
  return out;
}

/// Everything about one engine.
std::vector<Table> detail_tables(const FleetView& view, const EngineName& name, Instant now) {
  Table facts{fmt::format("engine {}", name), {{"fact"}, {"value", 4}}, {}};
  for (const auto& engine : engine_statuses(view, now)) {
    if (engine.name != name) continue;
    const auto add = [&](std::string_view fact, fleet_view::Cell value) {
      facts.rows.push_back({fleet_view::cell(fact), std::move(value)});
    };
    add("cluster", engine.cluster.str());
    add("models", engine.models);
    add("health", engine.state ? fleet_view::cell(fmt::format("{}: {}", name_of(*engine.state),
                                                              sentence_of(*engine.state)))
                               : fleet_view::Cell());
    add("evidence", engine.evidence);
    if (const auto* verdict = view.verdict(name)) add("detail", verdict->message.detail);
    add("for_s", fleet_view::maybe(engine.since_s));
    add("running", fleet_view::maybe(engine.running));
    add("waiting", fleet_view::maybe(engine.waiting));
    add("kv_usage", fleet_view::maybe(engine.kv_usage));
    add("latency_s", fleet_view::maybe(engine.latency_s));
    add("served_per_s", engine.served_rps);
    add("failed_per_s", engine.failed_rps);
    add("slowness", fleet_view::maybe(engine.slowness));
    add("signal_age_s", fleet_view::maybe(engine.signal_age_s));
  }
  std::vector<Table> out{std::move(facts)};
  for (Table& table : show_weights(view, now, name)) out.push_back(std::move(table));
  return out;
}

void add_text(const std::string& text, Ui& ui, std::size_t lines, Screen& out) {
  std::vector<std::string_view> all;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    all.push_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  ui.explanation_first = std::min(ui.explanation_first, all.empty() ? 0 : all.size() - 1);
  out.rows = all.size();
  out.page = lines;
  for (std::size_t i = ui.explanation_first; i < all.size() && i < ui.explanation_first + lines; ++i)
    out.lines.push_back(plain(std::string(all[i])));
}

Line footer(const Ui& ui) {
  if (ui.typing == Ui::Typing::filter) return {{"filter: ", Look::bold}, {ui.typed + "_"}};
  if (ui.typing == Ui::Typing::decision) return {{"decision: ", Look::bold}, {ui.typed + "_"}};
  return plain(std::string(keys_line), Look::dim);
}

Line tabs_line(const Ui& ui) {
  Line out;
  for (std::size_t i = 0; i < enum_size<Tab>; ++i)
    out.push_back({fmt::format(" {} ", name_of(static_cast<Tab>(i))),
                   static_cast<Tab>(i) == ui.tab ? Look::chosen : Look::dim});
  if (ui.tab == Tab::engines)
    out.push_back(
        {fmt::format("  sorted: {}{}", name_of(ui.sort), ui.reverse ? " (reversed)" : ""), Look::dim});
  if (!ui.filter.empty()) out.push_back({fmt::format("  filter: {}", ui.filter), Look::warn});
  return out;
}

/// Cuts a line at the terminal's edge.
void fit(Line& line, std::size_t columns) {
  std::size_t used = 0;
  for (Span& span : line) {
    if (span.text.size() > columns - used) span.text.resize(columns - used);
    used += span.text.size();
  }
}

}  // namespace

std::string text_of(const Line& line) {
  std::string out;
  for (const Span& span : line) out += span.text;
  return out;
}

Screen draw(const FleetView& view, Ui& ui, std::string_view title, Instant now, Size size) {
  Screen out;
  add_summary(view, title, ui, now, out.lines);
  out.lines.push_back(tabs_line(ui));
  const std::size_t lines = size.lines > 5 ? size.lines - 4 : 1;
  if (ui.help) {
    for (const std::string& line : help_lines)
      if (out.lines.size() + 1 < size.lines) out.lines.push_back(plain(line));
  } else if (!ui.explanation.empty()) {
    add_text(ui.explanation, ui, lines, out);
  } else {
    switch (ui.tab) {
      case Tab::engines:
        if (ui.detail.empty())
          add_engines(view, ui, now, size, lines, out);
        else
          add_table(detail_tables(view, ui.detail, now), ui, lines, out);
        break;
      case Tab::demand: add_table({demand_table(view)}, ui, lines, out); break;
      case Tab::routers: add_table({router_table(view, now)}, ui, lines, out); break;
      case Tab::processes: add_table({process_table(view, now)}, ui, lines, out); break;
      case Tab::alerts: add_table(show_alerts(view, now), ui, lines, out); break;
    }
  }
  out.lines.resize(size.lines > 0 ? size.lines - 1 : 0);
  out.lines.push_back(footer(ui));
  for (Line& line : out.lines) fit(line, size.columns);
  return out;
}

}  // namespace signalbox::top
