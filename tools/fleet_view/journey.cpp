#include "tools/fleet_view/journey.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace signalbox::fleet_view {
namespace {

struct Step {
  Instant at;
  std::string process;
  std::string what;
  std::string detail;
};

class Journey {
 public:
  Journey(const std::vector<Said>& said, const Said& record, const RowNames& names)
      : said_(said), record_(std::get<schema::DecisionRecord>(record.delivery->message)), names_(names) {
    router_ = record.delivery->envelope.source;
    // The router's clock against ours, as its own message shows it.
    offset_ = record.arrived.time_since_epoch() - record.delivery->age - record.delivery->envelope.sent;
    arrived_ = instant_at(record_.arrived + offset_);
    ended_ = arrived_ + record_.took;
  }

  Table table() {
    before();
    decisions();
    attempts();
    after();
    std::stable_sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
    Table out{"journey", {{"at_s", 4}, {"process"}, {"what"}, {"detail"}}, {}};
    for (const Step& step : steps_)
      out.rows.push_back({to_seconds(step.at - arrived_), step.process, step.what, step.detail});
    return out;
  }

 private:
  static Instant when(const Said& said) { return said.arrived - said.delivery->age; }
  void add(Instant at, const ProcessName& process, std::string what, std::string detail) {
    steps_.push_back({at, process.str(), std::move(what), std::move(detail)});
  }
  std::string engine(EngineIndex row) const {
    return row.valid() && names_.engine ? names_.engine(record_.table, row) : "-";
  }

  /// The last message before the arrival for which `is_it` holds.
  template <class T, class F>
  const Said* last_before(F&& is_it) const {
    const Said* out = nullptr;
    for (const Said& said : said_) {
      const auto* message = std::get_if<T>(&said.delivery->message);
      if (message != nullptr && when(said) <= arrived_ && is_it(*message)) out = &said;
    }
    return out;
  }
  template <class T, class F>
  const Said* first_after(Instant since, F&& is_it) const {
    for (const Said& said : said_) {
      const auto* message = std::get_if<T>(&said.delivery->message);
      if (message != nullptr && when(said) >= since && is_it(*message, said)) return &said;
    }
    return nullptr;
  }

  void before() {
    const auto in_force = [&](const schema::RoutingSnapshot& s) {
      return s.cluster == record_.cluster && s.version == record_.snapshot;
    };
    const auto same = [&](const schema::RoutingSnapshot& s) {
      return s.cluster == record_.cluster && s.version.term.counter == record_.snapshot.term.counter &&
             s.version.sequence == record_.snapshot.sequence;
    };
    const Said* plan = last_before<schema::RoutingSnapshot>(in_force);
    if (plan == nullptr) plan = last_before<schema::RoutingSnapshot>(same);
    if (plan != nullptr) {
      const auto& snapshot = std::get<schema::RoutingSnapshot>(plan->delivery->message);
      std::string weights;
      for (const auto& row : snapshot.weights)
        if (row.request_class == record_.request_class && row.weight > 0)
          weights += fmt::format("{}{} {:.2f}", weights.empty() ? "" : ", ", engine(row.engine), row.weight);
      add(when(*plan), plan->delivery->envelope.source, fmt::format("plan {}", snapshot.version),
          fmt::format("{}, gap {:.3f} %; weights of its class: {}", name_of(snapshot.kind),
                      snapshot.gap * 100, weights.empty() ? "none" : weights));
    }
    const auto of_engine = [&](const auto& message) { return message.engine == record_.engine_name; };
    if (const Said* verdict = last_before<schema::HealthVerdict>(of_engine)) {
      const auto& word = std::get<schema::HealthVerdict>(verdict->delivery->message);
      add(when(*verdict), verdict->delivery->envelope.source, fmt::format("verdict on {}", word.engine),
          fmt::format("{}: {}", name_of(word.state), word.detail));
    }
    if (const Said* signal = last_before<schema::EngineSignal>(of_engine)) {
      const auto& word = std::get<schema::EngineSignal>(signal->delivery->message);
      add(when(*signal) - word.reading_age, signal->delivery->envelope.source,
          fmt::format("signal of {}", word.engine),
          fmt::format("{} running, {} waiting, slowness {:.2f}", word.running.value_or(0),
                      word.waiting.value_or(0), word.slowness));
    }
  }

  void decisions() {
    add(arrived_, router_, "arrived",
        fmt::format("class {} ({}), {:.0f} prompt tokens, {:.0f} output tokens expected or measured",
                    record_.class_name, record_.rule, record_.prompt_tokens, record_.output_tokens));
    bool any = false;
    for (const Said& said : said_) {
      const auto* read = std::get_if<schema::DecisionInputs>(&said.delivery->message);
      if (read == nullptr || read->decision != record_.decision) continue;
      any = true;
      add(instant_at(read->decided_at + offset_), router_, fmt::format("decision {}", read->attempt + 1),
          choice(read->candidates, read->chosen));
    }
    if (!any && record_.refused == schema::RefuseReason::none)
      add(arrived_, router_, "decision", choice(record_.candidates, record_.engine));
    if (record_.refused != schema::RefuseReason::none)
      add(ended_, router_, fmt::format("refused with {}", record_.status),
          std::string(sentence_of(record_.refused)));
  }

  std::string choice(const std::vector<schema::CandidateRow>& rows, EngineIndex chosen) const {
    std::string out = engine(chosen);
    for (const auto& row : rows)
      if (row.fate == schema::CandidateFate::chosen || row.fate == schema::CandidateFate::dearer)
        out += fmt::format("{} {} {:.4f} s", row.engine == rows.front().engine ? ":" : ",",
                           engine(row.engine), row.total_s);
    return out;
  }

  void attempts() {
    std::size_t number = 0;
    for (const auto& attempt : record_.attempts) {
      const std::string of = record_.attempts.size() > 1 ? fmt::format(" {}", ++number) : std::string();
      add(arrived_ + attempt.began, router_, fmt::format("attempt{} began", of),
          fmt::format("on {}", engine(attempt.engine)));
      if (attempt.first_byte > Duration::zero())
        add(arrived_ + attempt.first_byte, router_, fmt::format("first byte{}", of),
            fmt::format("from {}", engine(attempt.engine)));
      if (attempt.ended > Duration::zero())
        add(arrived_ + attempt.ended, router_, fmt::format("attempt{} ended", of),
            fmt::format("{}, status {}", sentence_of(attempt.end), attempt.status));
    }
  }

  void after() {
    const auto its = [&](const schema::OutcomeReport&, const Said& said) {
      return said.delivery->envelope.source == router_;
    };
    const Said* report = first_after<schema::OutcomeReport>(ended_, its);
    if (report == nullptr) return;
    const auto& outcome = std::get<schema::OutcomeReport>(report->delivery->message);
    add(when(*report), router_, fmt::format("report {}", outcome.number), "counts it for the plan");
    const auto knows = [&](const schema::RoutingSnapshot& snapshot, const Said&) {
      return std::any_of(snapshot.covers.begin(), snapshot.covers.end(), [&](const schema::CoverRow& cover) {
        return cover.router == router_ && cover.report >= outcome.number;
      });
    };
    if (const Said* plan = first_after<schema::RoutingSnapshot>(ended_, knows))
      add(when(*plan), plan->delivery->envelope.source,
          fmt::format("plan {}", std::get<schema::RoutingSnapshot>(plan->delivery->message).version),
          "knows that report");
  }

  const std::vector<Said>& said_;
  const schema::DecisionRecord& record_;
  const RowNames& names_;
  ProcessName router_;
  Duration offset_{};
  Instant arrived_, ended_;
  std::vector<Step> steps_;
};

}  // namespace

std::optional<Table> journey(const std::vector<Said>& said, const std::string& decision,
                             const RowNames& names) {
  const auto record = std::find_if(said.begin(), said.end(), [&](const Said& s) {
    const auto* r = std::get_if<schema::DecisionRecord>(&s.delivery->message);
    return r != nullptr && r->decision == decision;
  });
  if (record == said.end()) return std::nullopt;
  return Journey(said, *record, names).table();
}

}  // namespace signalbox::fleet_view
