#include "actors/cluster_router/routing/filed_record.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace signalbox::routing {

using schema::CandidateFate;

namespace {

/// Eight bits of mantissa: an error of at most 0.2 %.
std::uint16_t short_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x8000) >> 16);
}
double wide(std::uint16_t half) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16));
}

std::uint16_t short_index(std::uint32_t index) {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(index, UINT16_MAX));
}

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

std::array<std::uint16_t, 5> short_costs(const CandidateCore& c) {
  return {short_float(c.network_s), short_float(c.queue_s), short_float(c.prefill_s), short_float(c.decode_s),
          short_float(c.price_s)};
}

float total(const CandidateCore& c) { return c.network_s + c.queue_s + c.prefill_s + c.decode_s + c.price_s; }

bool priced(CandidateFate fate) { return fate == CandidateFate::dearer || fate == CandidateFate::kv_full; }

std::uint32_t checksum_of(const FiledRecord& record) {
  return static_cast<std::uint32_t>(XXH3_64bits(&record, offsetof(FiledRecord, checksum)));
}

}  // namespace

FiledCosts costs_of(const RecordDetail& detail) {
  FiledCosts out;
  if (detail.count == 0 || detail.candidates[0].fate != CandidateFate::chosen) return out;
  out.cost_s[0] = short_costs(detail.candidates[0]);
  const CandidateCore* next = nullptr;
  for (std::size_t i = 1; i < detail.count; ++i) {
    const CandidateCore& c = detail.candidates[i];
    if (!priced(c.fate)) continue;
    ++out.compared;
    const auto rank = [](const CandidateCore& x) { return x.fate == CandidateFate::dearer ? 0 : 1; };
    if (next == nullptr || rank(c) < rank(*next) || (rank(c) == rank(*next) && total(c) < total(*next)))
      next = &c;
  }
  ++out.compared;
  if (next == nullptr) return out;
  out.cost_s[1] = short_costs(*next);
  out.next_best = short_index(next->engine);
  out.next_fate = next->fate;
  return out;
}

FiledRecord filed(std::uint64_t life, const RecordCore& core, const FiledCosts& costs) {
  FiledRecord out;
  out.life = life;
  out.count = core.count;
  out.seed = core.seed;
  out.arrived_us = core.arrived_ns / 1000;
  out.names = core.names;
  out.term = narrow(core.term), out.sequence = narrow(core.sequence);
  out.took_us = core.took_us;
  out.prompt_tokens = core.prompt_tokens, out.output_tokens = core.output_tokens;
  for (std::size_t i = 0; i < core.kept.size(); ++i) {
    const AttemptCore& a = core.kept[i];
    out.times_us[i] = {a.began_us, a.first_byte_us, a.ended_us};
    out.engines[i] = short_index(a.engine);
    out.statuses[i] = a.status;
    out.ends[i] = a.end;
  }
  out.request_class = core.request_class;
  out.status = core.status;
  out.snapshot_age_s = short_float(core.snapshot_age_s);
  out.costs = costs;
  out.refused = core.refused;
  out.rule = core.rule;
  out.attempts = core.attempts;
  out.flags = static_cast<std::uint8_t>((core.degraded ? FiledRecord::degraded : 0) |
                                        (core.sticky ? FiledRecord::sticky : 0) |
                                        std::min<unsigned>(core.continued, 15) << 4);
  return out;
}

void seal(FiledRecord& record) { record.checksum = checksum_of(record); }
bool is_sound(const FiledRecord& record) {
  return record.life != 0 && record.checksum == checksum_of(record);
}

std::uint32_t fingerprint_of(const policy::CompiledPolicy& policy, const schema::FleetTable& table) {
  const std::uint64_t both[] = {policy.hash.fingerprint(), table.content.fingerprint()};
  return static_cast<std::uint32_t>(XXH3_64bits(both, sizeof both));
}

std::string names_text(const ClusterName& cluster, const policy::CompiledPolicy& policy,
                       const schema::FleetTable& table, std::size_t most_bytes) {
  std::string out =
      fmt::format("cluster {}\npolicy {}\ntable {}\n", cluster, policy.hash.hex(), table.content.hex());
  const auto add = [&](std::string line) {
    if (out.size() + line.size() > most_bytes) return false;
    out += line;
    return true;
  };
  for (const policy::ClassRow& row : policy.classes)
    if (!add(fmt::format("class {} {} {}\n", row.line, row.name, policy.at(row.model).name))) return out;
  for (const auto& row : table.engines)
    if (!add(fmt::format("engine {}\n", row.name))) return out;
  return out;
}

FiledNames parse_names(std::string_view text) {
  FiledNames out;
  const auto word = [](std::string_view& line) {
    const std::string_view first = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), first.size() + 1));
    return first;
  };
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::string_view what = word(line);
    if (what == "cluster") out.cluster = line;
    if (what == "policy") out.policy = Digest::from_hex(line).value_or(Digest{});
    if (what == "table") out.table = Digest::from_hex(line).value_or(Digest{});
    if (what == "engine") out.engines.emplace_back(line);
    if (what != "class") continue;
    FiledNames::Class row;
    const std::string_view number = word(line);
    std::from_chars(number.data(), number.data() + number.size(), row.line);
    row.name = word(line);
    row.model = line;
    out.classes.push_back(std::move(row));
  }
  return out;
}

namespace {

EngineIndex engine_index(std::uint16_t engine) {
  return engine == UINT16_MAX ? EngineIndex{} : EngineIndex(engine);
}

schema::CandidateRow candidate(const FiledCosts& costs, std::size_t which, EngineIndex engine,
                               CandidateFate fate) {
  schema::CandidateRow row;
  row.engine = engine;
  row.fate = fate;
  const auto& c = costs.cost_s[which];
  row.network_s = wide(c[0]), row.queue_s = wide(c[1]), row.prefill_s = wide(c[2]);
  row.decode_s = wide(c[3]), row.price_s = wide(c[4]);
  row.total_s = row.network_s + row.queue_s + row.prefill_s + row.decode_s + row.price_s;
  return row;
}

void name_rows(schema::DecisionRecord& out, const FiledRecord& record, const FiledNames& names) {
  out.cluster = ClusterName(names.cluster);
  if (record.request_class == UINT16_MAX) return;
  out.policy = names.policy;
  out.table = names.table;
  if (record.request_class < names.classes.size()) {
    const FiledNames::Class& row = names.classes[record.request_class];
    out.class_name = row.name;
    out.model = ModelName(row.model);
    if (record.rule == policy::Rule::matched) out.rule = rule_text(record.rule, row.name, row.line);
  }
  if (out.engine.valid() && out.engine.at() < names.engines.size())
    out.engine_name = EngineName(names.engines[out.engine.at()]);
}

}  // namespace

schema::DecisionRecord as_message(const FiledRecord& record, const FiledNames* names) {
  schema::DecisionRecord out;
  out.kept = schema::RecordKept::filed;
  out.decision = to_string(DecisionId{record.life, record.count});
  out.arrived_wall = std::chrono::microseconds(record.arrived_us);
  out.took = std::chrono::microseconds(record.took_us);
  out.refused = record.refused;
  out.status = record.status;
  out.prompt_tokens = static_cast<double>(record.prompt_tokens);
  out.output_tokens = static_cast<double>(record.output_tokens);
  out.seed = record.seed;
  out.degraded = (record.flags & FiledRecord::degraded) != 0;
  out.continued = record.flags >> 4;
  out.snapshot.term.counter = record.term;
  out.snapshot.sequence = record.sequence;
  out.snapshot_age = from_seconds(wide(record.snapshot_age_s));
  out.rule = sentence_of(record.rule);
  if (record.request_class != UINT16_MAX) out.request_class = ClassIndex(record.request_class);
  for (std::size_t i = 0; i < std::min<std::size_t>(record.attempts, record.engines.size()); ++i) {
    const auto us = [&](std::size_t which) { return std::chrono::microseconds(record.times_us[i][which]); };
    out.attempts.push_back(
        {engine_index(record.engines[i]), record.ends[i], record.statuses[i], us(0), us(1), us(2)});
  }
  if (!out.attempts.empty()) {
    out.engine = engine_of(out.attempts);
    if (record.costs.compared > 0)
      out.candidates.push_back(candidate(record.costs, 0, out.attempts.back().engine, CandidateFate::chosen));
    if (record.costs.next_best != UINT16_MAX)
      out.candidates.push_back(
          candidate(record.costs, 1, engine_index(record.costs.next_best), record.costs.next_fate));
  }
  if (names != nullptr) name_rows(out, record, *names);
  return out;
}

}  // namespace signalbox::routing
