#include "tools/observe/what_if.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "actors/cluster_router/routing/past_decision.hpp"
#include "cluster-config/policy/compile.hpp"
#include "messages/base/json_text.hpp"
#include "tools/observe/record_text.hpp"

namespace signalbox::observe {
namespace {

using Rows = std::vector<schema::CandidateRow>;
using schema::CandidateFate;
namespace dom = simdjson::dom;

std::string name_of_row(const std::vector<std::string>& engines, EngineIndex engine) {
  if (!engine.valid()) return {};
  return engine.at() < engines.size() ? engines[engine.at()] : fmt::format("engine {}", engine.value);
}

Result<EngineIndex> find_engine(const std::vector<std::string>& engines, const std::string& name) {
  const auto found = std::find(engines.begin(), engines.end(), name);
  if (found == engines.end())
    return fail(ErrorKind::not_found, fmt::format("the fleet has no engine '{}'", name), "--what-if",
                "'signalbox inspect engines' lists them");
  return EngineIndex(static_cast<std::size_t>(found - engines.begin()));
}

const schema::CandidateRow* row_of(const Rows& rows, EngineIndex engine) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.engine == engine; });
  return found == rows.end() ? nullptr : &*found;
}

bool was_compared(CandidateFate fate) {
  return fate == CandidateFate::chosen || fate == CandidateFate::dearer || fate == CandidateFate::kv_full;
}

EngineIndex chosen_of(const Rows& rows) {
  for (const auto& row : rows)
    if (row.fate == CandidateFate::chosen) return row.engine;
  return {};
}

/// The candidates of a record in JSON.
Result<Rows> rows_of(const std::string& json) {
  dom::parser parser;
  dom::element record;
  dom::array list;
  if (parser.parse(json).get(record) != simdjson::SUCCESS ||
      record["candidates"].get(list) != simdjson::SUCCESS)
    return invalid("the record cannot be read");
  Rows out;
  for (const dom::element entry : list) {
    schema::CandidateRow row;
    std::uint64_t engine = 0;
    std::string_view fate;
    if (entry["engine"].get(engine) != simdjson::SUCCESS || entry["fate"].get(fate) != simdjson::SUCCESS)
      continue;
    row.engine = EngineIndex(engine);
    row.fate = value_of<CandidateFate>(fate).value_or(CandidateFate::not_drawn);
    const auto read = [&](const char* key, double& to) {
      double value = 0;
      if (entry[key].get(value) == simdjson::SUCCESS) to = value;
    };
    read("weight", row.weight), read("penalty", row.penalty), read("network_s", row.network_s);
    read("queue_s", row.queue_s), read("prefill_s", row.prefill_s), read("decode_s", row.decode_s);
    read("price_s", row.price_s), read("total_s", row.total_s), read("matched_tokens", row.matched_tokens);
    read("inflight", row.inflight);
    out.push_back(row);
  }
  return out;
}

/// What spoke most for the cheaper of two.
std::string largest_part(const schema::CandidateRow& cheap, const schema::CandidateRow& dear) {
  using Part = std::pair<std::string_view, double>;
  const std::array parts{
      Part{"network", dear.network_s - cheap.network_s}, Part{"queue", dear.queue_s - cheap.queue_s},
      Part{"prefill", dear.prefill_s - cheap.prefill_s}, Part{"decode", dear.decode_s - cheap.decode_s},
      Part{"delay to others", dear.price_s - cheap.price_s}};
  const auto most = std::max_element(parts.begin(), parts.end(),
                                     [](const Part& a, const Part& b) { return a.second < b.second; });
  return most->second <= 0 ? std::string()
                           : fmt::format(", most of it {} ({:.4f} s)", most->first, most->second);
}

std::string sentence_for_engine(const schema::CandidateRow& row, const schema::CandidateRow* chosen,
                                const std::vector<std::string>& engines) {
  const std::string name = name_of_row(engines, row.engine);
  if (row.total_s <= 0) return fmt::format("{} could not have served it: {}.", name, sentence_of(row.fate));
  std::string out = fmt::format("{} would have cost {:.4f} s", name, row.total_s);
  if (chosen == nullptr || chosen->engine == row.engine) return out + ": it is the one that was chosen.";
  const double more = row.total_s - chosen->total_s;
  out += fmt::format(", {:.4f} s {} than {}", std::abs(more), more < 0 ? "less" : "more",
                     name_of_row(engines, chosen->engine));
  out += more < 0 ? largest_part(row, *chosen) : largest_part(*chosen, row);
  if (!was_compared(row.fate)) out += fmt::format(". It was not compared: {}", sentence_of(row.fate));
  return out + ".";
}

std::string condition_of(const std::vector<WhatIf>& changes, const std::string& chosen) {
  std::string out;
  for (const WhatIf& change : changes) {
    const std::string& engine = change.engine.empty() ? chosen : change.engine;
    out += out.empty() ? "" : " and ";
    if (change.kind == WhatIf::Kind::without) out += fmt::format("without {}", engine);
    if (change.kind == WhatIf::Kind::slow)
      out += fmt::format("with {} {:g} times as slow", engine, change.factor);
  }
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

std::string sentence_for_change(const WhatIfAnswer& answer, const Rows& before,
                                const std::vector<WhatIf>& changes) {
  const auto cost = [](const Rows& rows) {
    const auto* row = row_of(rows, chosen_of(rows));
    return row == nullptr ? 0.0 : row->total_s;
  };
  const std::string condition = condition_of(changes, answer.before);
  if (answer.after.empty()) return condition + ", no engine would have been left for it.";
  if (answer.after == answer.before)
    return fmt::format("{}, {} would still have been chosen, at {:.4f} s (it cost {:.4f} s).", condition,
                       answer.after, cost(answer.candidates), cost(before));
  return fmt::format("{}, {} would have been chosen at {:.4f} s; {} was, at {:.4f} s.", condition,
                     answer.after, cost(answer.candidates), answer.before.empty() ? "none" : answer.before,
                     cost(before));
}

// --- from the recorded inputs

void slow_down(schema::InputRow& row, double factor) {
  row.step_s *= factor, row.per_sequence_s *= factor;
  row.per_context_token_s *= factor, row.per_prefill_token_s *= factor;
}

Result<WhatIfAnswer> from_inputs(const FoundInputs& found, const std::vector<std::string>& engines,
                                 const std::vector<WhatIf>& changes) {
  auto compiled = policy::compile_text(found.policy, "recorded policy");
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  const auto policy = std::make_shared<const policy::CompiledPolicy>(*std::move(compiled));
  auto past = routing::PastDecision::recall(found.inputs, policy);
  if (!past) return tl::unexpected(std::move(past.error()));
  const routing::Decision decided = past->decide();
  const Rows before = past->rows(decided);
  WhatIfAnswer out;
  out.exact = true;
  out.basis = "made again from the recorded inputs, with the same draws";
  out.engines = engines;
  out.before = name_of_row(engines, decided.engine);

  schema::DecisionInputs inputs = found.inputs;
  for (const WhatIf& change : changes) {
    EngineIndex engine = decided.engine;
    if (!change.engine.empty()) {
      const auto known = find_engine(engines, change.engine);
      if (!known) return tl::unexpected(known.error());
      engine = *known;
    }
    const auto row = std::find_if(inputs.engines.begin(), inputs.engines.end(),
                                  [&](const auto& r) { return r.engine == engine; });
    if (change.kind == WhatIf::Kind::engine) {
      if (row == inputs.engines.end())
        return invalid(fmt::format("{} may get no request of this class", change.engine), "--what-if",
                       "'signalbox explain' without it says why");
      const auto* compared = row_of(before, engine);
      const schema::CandidateRow asked =
          compared != nullptr && was_compared(compared->fate) ? *compared : past->cost_on(engine);
      out.sentence = sentence_for_engine(asked, row_of(before, decided.engine), engines);
      out.after = change.engine;
      out.candidates = before;
      if (compared == nullptr) out.candidates.push_back(asked);
      return out;
    }
    if (row == inputs.engines.end()) continue;  // it could not serve the class anyhow
    if (change.kind == WhatIf::Kind::slow)
      slow_down(*row, change.factor);
    else
      inputs.engines.erase(row);
  }
  auto other = routing::PastDecision::recall(inputs, policy);
  if (!other) return tl::unexpected(std::move(other.error()));
  const routing::Decision then = other->decide();
  out.after = name_of_row(engines, then.engine);
  out.candidates = other->rows(then);
  out.sentence = sentence_for_change(out, before, changes);
  return out;
}

// --- from the candidates alone

/// All of a cost but the network grows with the engine's step time.
void slow_down(schema::CandidateRow& row, double factor) {
  row.queue_s *= factor, row.prefill_s *= factor, row.decode_s *= factor, row.price_s *= factor;
  row.total_s = row.network_s + row.queue_s + row.prefill_s + row.decode_s + row.price_s;
}

void choose_again(Rows& rows) {
  schema::CandidateRow* least = nullptr;
  for (const bool full_too : {false, true}) {
    for (auto& row : rows) {
      if (!was_compared(row.fate) || (row.fate == CandidateFate::kv_full && !full_too)) continue;
      if (least == nullptr || row.total_s < least->total_s) least = &row;
    }
    if (least != nullptr) break;
  }
  for (auto& row : rows)
    if (row.fate == CandidateFate::chosen) row.fate = CandidateFate::dearer;
  if (least != nullptr) least->fate = CandidateFate::chosen;
}

Result<WhatIfAnswer> from_candidates(const std::string& record, const std::vector<std::string>& engines,
                                     const std::vector<WhatIf>& changes) {
  auto rows = rows_of(record);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  const Rows before = *rows;
  const EngineIndex chosen = chosen_of(before);
  WhatIfAnswer out;
  out.basis = "from the recorded candidates alone: who was not drawn then is not drawn now";
  out.engines = engines;
  out.before = name_of_row(engines, chosen);
  for (const WhatIf& change : changes) {
    EngineIndex engine = chosen;
    if (!change.engine.empty()) {
      const auto known = find_engine(engines, change.engine);
      if (!known) return tl::unexpected(known.error());
      engine = *known;
    }
    const auto row =
        std::find_if(rows->begin(), rows->end(), [&](const auto& r) { return r.engine == engine; });
    if (row == rows->end())
      return invalid(fmt::format("the record does not know {}", change.engine), "--what-if");
    if (change.kind == WhatIf::Kind::engine) {
      if (row->total_s <= 0 && row->fate == CandidateFate::not_drawn)
        return invalid(
            fmt::format("{} was not drawn, and what it would have cost was not recorded", change.engine),
            "--what-if", "record with 'signalbox tap --message decision_inputs --record FILE'");
      out.sentence = sentence_for_engine(*row, row_of(before, chosen), engines);
      out.after = change.engine;
      out.candidates = before;
      return out;
    }
    if (change.kind == WhatIf::Kind::slow)
      slow_down(*row, change.factor);
    else
      rows->erase(row);
  }
  choose_again(*rows);
  out.after = name_of_row(engines, chosen_of(*rows));
  out.candidates = std::move(*rows);
  out.sentence = sentence_for_change(out, before, changes);
  return out;
}

fleet_view::Table table_of(const WhatIfAnswer& answer) {
  fleet_view::Table out{"candidates", cost_columns(), {}};
  for (const auto& row : answer.candidates) {
    std::vector<fleet_view::Cell> cells{name_of_row(answer.engines, row.engine),
                                        fleet_view::cell(name_of(row.fate)),
                                        row.weight > 0 ? fleet_view::cell(row.weight) : fleet_view::Cell()};
    for (const double part :
         {row.penalty, row.network_s, row.queue_s, row.prefill_s, row.decode_s, row.price_s, row.total_s})
      cells.push_back(row.total_s > 0 ? fleet_view::cell(part) : fleet_view::Cell());
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace

Result<WhatIf> parse_what_if(std::string_view text) {
  const auto wrong = [&] {
    return invalid(fmt::format("'{}' is no change", text), "--what-if",
                   "say engine=E, slow=2x, slow=E:2x or without=E");
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) return wrong();
  const std::string_view word = text.substr(0, equals);
  std::string_view value = text.substr(equals + 1);
  WhatIf out;
  if (word == "engine" || word == "without") {
    out.kind = word == "engine" ? WhatIf::Kind::engine : WhatIf::Kind::without;
    out.engine = value;
    return out;
  }
  if (word != "slow") return wrong();
  out.kind = WhatIf::Kind::slow;
  if (const std::size_t colon = value.find(':'); colon != std::string_view::npos) {
    out.engine = value.substr(0, colon);
    value.remove_prefix(colon + 1);
  }
  if (value.ends_with('x')) value.remove_suffix(1);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out.factor);
  if (error != std::errc() || end != value.data() + value.size() || !(out.factor > 0) || out.factor > 1e3)
    return wrong();
  return out;
}

Result<WhatIfAnswer> answer_what_if(const std::string& record, const std::optional<FoundInputs>& inputs,
                                    const std::vector<std::string>& engines,
                                    const std::vector<WhatIf>& changes) {
  const auto asks = [](const WhatIf& change) { return change.kind == WhatIf::Kind::engine; };
  if (changes.size() > 1 && std::any_of(changes.begin(), changes.end(), asks))
    return invalid("engine=E stands alone", "--what-if");
  return inputs ? from_inputs(*inputs, engines, changes) : from_candidates(record, engines, changes);
}

std::string as_text(const WhatIfAnswer& answer) {
  return fmt::format("{}\n({})\n\n{}", answer.sentence, answer.basis,
                     fleet_view::as_text({table_of(answer)}));
}

std::string as_json(const WhatIfAnswer& answer) {
  std::string tables = fleet_view::as_json({table_of(answer)});
  return fmt::format("{{\"sentence\": {}, \"exact\": {}, \"before\": {}, \"after\": {}, {}",
                     json_string(answer.sentence), answer.exact, json_string(answer.before),
                     json_string(answer.after), tables.substr(1));
}

}  // namespace signalbox::observe
