#include "tools/simulate/render.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/cluster_router/http/errors.hpp"
#include "tools/simulate/world/seeds.hpp"

namespace signalbox::simulate {
namespace {

using http::json_string;

double seconds(Instant at) { return to_seconds(at.time_since_epoch()); }

std::string list_counts(const PhaseLoad& load) {
  std::string out;
  for (std::size_t i = 0; i < load.refused.size(); ++i)
    if (load.refused[i] > 0)
      out += fmt::format(" {} {}", load.refused[i], name_of(static_cast<schema::RefuseReason>(i)));
  for (std::size_t i = 0; i < load.failed.size(); ++i)
    if (load.failed[i] > 0)
      out += fmt::format(" {} {}", load.failed[i], name_of(static_cast<schema::AttemptEnd>(i)));
  return out;
}

std::string settled(const std::optional<Duration>& after) {
  return after ? fmt::format("{:.1f} s", to_seconds(*after)) : "never";
}

void add_phase(std::string& out, const Report& report, std::size_t p) {
  const Phase& phase = report.phases[p];
  out += fmt::format("\n{:g} to {:g} s{}\n", seconds(phase.from), seconds(phase.until),
                     phase.opens_with.empty() ? "" : ": " + phase.opens_with);
  out += fmt::format("  {:<16} {:>8} {:>8} {:>8} {:>8}  {:>24}  {:>24}\n", "load", "offered", "served",
                     "refused", "failed", "TTFT mean/p50/p99 s", "E2E mean/p50/p99 s");
  for (std::size_t l = 0; l < phase.loads.size(); ++l) {
    const PhaseLoad& load = phase.loads[l];
    const auto show = [](const Quantiles& q) {
      return fmt::format("{:.3f}/{:.3f}/{:.3f}", q.mean, q.p50, q.p99);
    };
    out += fmt::format("  {:<16} {:>8} {:>8} {:>8} {:>8}  {:>24}  {:>24} {}\n", report.loads[l], load.offered,
                       load.served, load.refusals(), load.failures(), show(load.ttft_s), show(load.e2e_s),
                       list_counts(load));
  }
  if (p == 0) return;
  out += fmt::format("  {:<16} {:>8} {:>8} {:>10} {:>10} {:>10}\n", "weight of", "before", "after", "settled",
                     "beyond", "reversals");
  for (const WeightAnswer& a : report.answers[p - 1].engines)
    out += fmt::format("  {:<16} {:>8.3f} {:>8.3f} {:>10} {:>10.3f} {:>10}\n", report.engines[a.engine],
                       a.answer.before, a.answer.final, settled(a.answer.settled_after), a.answer.beyond,
                       a.answer.reversals);
  if (const auto& all = report.answers[p - 1].together)
    out += fmt::format("  {:<16} {:>28} {:>9.1f}% {:>10}\n", "all together", settled(all->settled_after),
                       100 * all->overshoot(), all->reversals);
}

std::string json_of(const Quantiles& q) {
  return fmt::format(R"({{"count":{},"mean":{},"p50":{},"p99":{}}})", q.count, q.mean, q.p50, q.p99);
}

template <class E, std::size_t N>
std::string json_of(const std::array<std::size_t, N>& counts) {
  std::string out;
  for (std::size_t i = 0; i < N; ++i)
    if (counts[i] > 0)
      out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", name_of(static_cast<E>(i)), counts[i]);
  return "{" + out + "}";
}

std::string json_of(const PhaseLoad& load, std::string_view name) {
  return fmt::format(
      R"({{"name":{},"offered":{},"served":{},"refused":{},"failed":{},"ttft_s":{},"e2e_s":{}}})",
      json_string(name), load.offered, load.served, json_of<schema::RefuseReason>(load.refused),
      json_of<schema::AttemptEnd>(load.failed), json_of(load.ttft_s), json_of(load.e2e_s));
}

std::string json_of(const WeightAnswer& a, std::string_view engine) {
  return fmt::format(
      R"({{"engine":{},"before":{},"after":{},"settled_after_s":{},"beyond":{},"reversals":{}}})",
      json_string(engine), a.answer.before, a.answer.final,
      a.answer.settled_after ? fmt::format("{}", to_seconds(*a.answer.settled_after)) : "null",
      a.answer.beyond, a.answer.reversals);
}

template <class T, class F>
std::string json_list(const std::vector<T>& items, F&& one) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) out += (i > 0 ? "," : "") + one(items[i], i);
  return "[" + out + "]";
}

}  // namespace

std::string as_text(const Report& report) {
  std::string out =
      fmt::format("{}, seed {}: {:g} s, {} events, {} messages, {} snapshots\n", report.scenario, report.seed,
                  to_seconds(report.duration), report.events, report.messages, report.snapshots);
  for (std::size_t p = 0; p < report.phases.size(); ++p) add_phase(out, report, p);
  if (!report.warnings.empty()) out += "\nfrom the log\n";
  for (const std::string& warning : report.warnings) out += "  " + warning + "\n";
  return out;
}

namespace {

std::string all_together(const SeedsAnswer& answer) {
  if (!answer.mean.together) return {};
  std::vector<double> runs = answer.overshoot;
  const Quantiles q = quantiles(runs);
  const StepAnswer& mean = *answer.mean.together;
  return fmt::format(
      "  {:<10} {:>28} {:>11.1f}%   overshoot of a single run: median {:.1f} %, worst {:.1f} %\n", "together",
      settled(mean.settled_after), 100 * mean.overshoot(), 100 * q.p50, 100 * runs.back());
}

}  // namespace

std::string as_text(std::span<const Report> reports) {
  const Report& first = reports.front();
  std::string out = fmt::format("{}, {} seeds from {}\n", first.scenario, reports.size(), first.seed);
  const auto answers = answers_of(reports);
  for (std::size_t p = 0; p < answers.size(); ++p) {
    const Phase& phase = first.phases[p + 1];
    out += fmt::format("\n{:g} to {:g} s: {}\n", seconds(phase.from), seconds(phase.until), phase.opens_with);
    out += fmt::format("  {:<10} {:^43} {:^33}\n  {:<10} {:>8} {:>8} {:>10} {:>12} {:>12} {:>10} {:>10}\n",
                       "", "mean of all runs", "worst single run", "weight of", "before", "after", "settled",
                       "beyond", "beyond", "settled", "reversals");
    for (const WeightAnswer& mean : answers[p].mean.engines) {
      const StepAnswer& a = mean.answer;
      const Worst& worst = answers[p].engines[mean.engine];
      out += fmt::format("  {:<10} {:>8.3f} {:>8.3f} {:>10} {:>12.3f} {:>12.3f} {:>10} {:>10}\n",
                         first.engines[mean.engine], a.before, a.final, settled(a.settled_after), a.beyond,
                         worst.beyond, settled(worst.settled_after), worst.reversals);
    }
    out += all_together(answers[p]);
  }
  return out;
}

std::string as_json(const Report& report) {
  const auto quoted = [](const std::string& text, std::size_t) { return json_string(text); };
  const auto phase_json = [&](const Phase& phase, std::size_t p) {
    const auto load = [&](const PhaseLoad& l, std::size_t i) { return json_of(l, report.loads[i]); };
    const auto answer = [&](const WeightAnswer& a, std::size_t) {
      return json_of(a, report.engines[a.engine]);
    };
    return fmt::format(R"({{"from_s":{},"until_s":{},"opens_with":{},"loads":{},"weights":{}}})",
                       seconds(phase.from), seconds(phase.until), json_string(phase.opens_with),
                       json_list(phase.loads, load),
                       p == 0 ? "[]" : json_list(report.answers[p - 1].engines, answer));
  };
  return fmt::format(
      R"({{"scenario":{},"seed":{},"duration_s":{},"events":{},"messages":{},"snapshots":{},"engines":{},"phases":{},"warnings":{}}})",
      json_string(report.scenario), report.seed, to_seconds(report.duration), report.events, report.messages,
      report.snapshots, json_list(report.engines, quoted), json_list(report.phases, phase_json),
      json_list(report.warnings, quoted));
}

std::string as_csv(const Report& report) {
  std::string out = "t_s,waiting_at_routers";
  for (const std::string& engine : report.engines)
    out += fmt::format(",{0}.planned,{0}.served,{0}.running,{0}.waiting,{0}.kv_usage", engine);
  out += "\n";
  for (const SampleRow& row : report.samples) {
    out += fmt::format("{:.3f},{}", seconds(row.at), row.waiting_at_routers);
    for (const EngineSample& e : row.engines)
      out +=
          fmt::format(",{:.6f},{:.6f},{},{},{:.4f}", e.planned, e.served, e.running, e.waiting, e.kv_usage);
    out += "\n";
  }
  return out;
}

}  // namespace signalbox::simulate
