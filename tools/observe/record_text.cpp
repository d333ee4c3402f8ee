#include "tools/observe/record_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "messages/schema/traffic.hpp"

namespace signalbox::observe {
namespace {

using fleet_view::Cell;
using fleet_view::Table;
using schema::CandidateFate;
namespace dom = simdjson::dom;

std::string text_of(const dom::object& object, std::string_view key) {
  std::string_view out;
  return object[key].get(out) == simdjson::SUCCESS ? std::string(out) : std::string();
}

std::optional<double> number_of(const dom::object& object, std::string_view key) {
  double out = 0;
  if (object[key].get(out) == simdjson::SUCCESS) return out;
  return std::nullopt;
}

std::vector<dom::object> rows_of(const dom::object& record, std::string_view key) {
  std::vector<dom::object> out;
  dom::array list;
  if (record[key].get(list) != simdjson::SUCCESS) return out;
  for (const dom::element entry : list)
    if (dom::object row; entry.get(row) == simdjson::SUCCESS) out.push_back(row);
  return out;
}

/// "1@optimizer-1.5"; nothing where no snapshot was in force.
std::string version_of(const dom::object& record) {
  dom::object snapshot, term;
  if (record["snapshot"].get(snapshot) != simdjson::SUCCESS ||
      number_of(snapshot, "sequence").value_or(0) == 0 || snapshot["term"].get(term) != simdjson::SUCCESS)
    return {};
  return fmt::format("{:.0f}@{}.{:.0f}", number_of(term, "counter").value_or(0), text_of(term, "optimizer"),
                     number_of(snapshot, "sequence").value_or(0));
}

Cell cell_of(const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::STRING: return std::string(std::string_view(value));
    case dom::element_type::BOOL: return bool(value);
    case dom::element_type::INT64: return std::int64_t(value);
    case dom::element_type::UINT64: return std::to_string(std::uint64_t(value));
    case dom::element_type::DOUBLE: return double(value);
    case dom::element_type::NULL_VALUE: return {};
    default: return simdjson::minify(value);
  }
}

class Writer {
 public:
  Writer(const dom::object& record, const std::vector<std::string>& engines)
      : record_(record), engines_(engines), candidates_(rows_of(record, "candidates")) {}

  std::string text() const { return sentence(); }
  std::string run(const std::vector<Table>& reasons) const {
    std::vector<Table> tables{candidates(), fates(), attempts()};
    tables.insert(tables.end(), reasons.begin(), reasons.end());
    tables.push_back(facts());
    return sentence() + "\n" + what_is_known() + "\n" + fleet_view::as_text(tables);
  }

 private:
  bool filed() const { return text_of(record_, "kept") == name_of(schema::RecordKept::filed); }

  /// Of a record that is not whole: what it lacks, and when that was.
  std::string what_is_known() const {
    if (!filed())
      return plan_is_gone()
                 ? "The plan that was in force is no longer kept: its weights, and why other engines were no "
                   "candidates, are not known.\n"
                 : "";
    std::string out = fmt::format("Known {}.", sentence_of(schema::RecordKept::filed));
    if (const auto wall = number_of(record_, "arrived_wall_s"); wall && *wall > 0)
      out += fmt::format(" It arrived at {:%Y-%m-%d %H:%M:%S} UTC.",
                         fmt::gmtime(static_cast<std::time_t>(*wall)));
    if (text_of(record_, "class_name").empty() && record_["class"].error() == simdjson::SUCCESS)
      out += " Which class and engines its numbers stand for is no longer known.";
    return out + "\n";
  }

  /// The router knows the number of the snapshot, but not whose it was.
  bool plan_is_gone() const { return version_of(record_).find("@.") != std::string::npos; }

  std::string name_of_engine(const dom::object& row) const {
    const auto index = number_of(row, "engine");
    if (!index) return "-";
    const auto at = static_cast<std::size_t>(*index);
    return at < engines_.size() ? engines_[at] : fmt::format("engine {}", at);
  }

  std::string sentence() const {
    const std::string refused = text_of(record_, "refused");
    const std::string who = fmt::format("{} is of class {} ({})", text_of(record_, "decision"),
                                        text_of(record_, "class_name"), text_of(record_, "rule"));
    if (refused != "none" && !refused.empty()) {
      const auto reason = value_of<schema::RefuseReason>(refused);
      return fmt::format("{}. It was refused with {:.0f}: {}.", who, number_of(record_, "status").value_or(0),
                         reason ? sentence_of(*reason) : refused);
    }
    return fmt::format("{}. {}{}", who, choice(), ending());
  }

  std::string choice() const {
    const dom::object* chosen = nullptr;
    const dom::object* next = nullptr;
    std::size_t compared = 0;
    for (const auto& row : candidates_) {
      const auto fate = value_of<CandidateFate>(text_of(row, "fate"));
      if (fate == CandidateFate::chosen) chosen = &row;
      if (fate == CandidateFate::chosen || fate == CandidateFate::dearer) ++compared;
      if (fate == CandidateFate::dearer &&
          (next == nullptr || number_of(row, "total_s") < number_of(*next, "total_s")))
        next = &row;
    }
    if (chosen == nullptr) return fmt::format("{} served it.", text_of(record_, "engine_name"));
    if (filed()) compared = 0;  // others were there
    const double cost = number_of(*chosen, "total_s").value_or(0);
    std::string out = fmt::format("{} cost least{}: {:.3f} s", name_of_engine(*chosen),
                                  compared > 0 ? fmt::format(" of {} candidates", compared) : "", cost);
    if (next != nullptr)
      out += fmt::format(", {:.3f} s less than {}{}", number_of(*next, "total_s").value_or(0) - cost,
                         name_of_engine(*next), largest_difference(*chosen, *next));
    return out + ".";
  }

  /// What spoke most against the next best.
  static std::string largest_difference(const dom::object& chosen, const dom::object& next) {
    std::string_view most;
    double by = 0;
    for (const std::string_view part : {"network_s", "queue_s", "prefill_s", "decode_s", "price_s"}) {
      const double difference = number_of(next, part).value_or(0) - number_of(chosen, part).value_or(0);
      if (difference > by) by = difference, most = part.substr(0, part.size() - 2);
    }
    return most.empty() ? std::string() : fmt::format(", most of it {} ({:.3f} s)", most, by);
  }

  std::string ending() const {
    const auto rows = rows_of(record_, "attempts");
    if (rows.empty()) return {};
    const dom::object& last = rows.back();
    const auto end = value_of<schema::AttemptEnd>(text_of(last, "end"));
    std::string out =
        fmt::format(" {} by {}", end ? sentence_of(*end) : text_of(last, "end"), name_of_engine(last));
    out[1] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[1])));
    if (rows.size() > 1) out += fmt::format(" in attempt {}", rows.size());
    if (const auto times = number_of(record_, "continued"); times && *times > 0)
      out += fmt::format(", which continued the stream of one that broke");
    if (const auto took = number_of(record_, "took_s"); took && *took > 0)
      out += fmt::format(", after {:.3f} s", *took);
    return out + ".";
  }

  Table candidates() const {
    Table table{"candidates", cost_columns(), {}};
    table.columns.insert(table.columns.end(), {{"matched_tokens", 0}, {"inflight", 1}, {"signal_age_s", 2}});
    for (const auto& row : candidates_) {
      std::vector<Cell> cells{name_of_engine(row), text_of(row, "fate")};
      const auto fate = value_of<CandidateFate>(text_of(row, "fate"));
      const bool priced =
          fate == CandidateFate::chosen || fate == CandidateFate::dearer || fate == CandidateFate::kv_full;
      for (std::size_t c = 2; c < table.columns.size(); ++c)
        cells.push_back(cell_of(row, table.columns[c].name, priced));
      table.rows.push_back(std::move(cells));
    }
    return table;
  }

  /// Of an engine that was not priced only the plan's weight is known, if it had one.
  static Cell cell_of(const dom::object& row, std::string_view column, bool priced) {
    const auto number = number_of(row, column);
    return priced || (column == "weight" && number > 0) ? fleet_view::maybe(number) : Cell();
  }

  /// What the fates in the table above mean.
  Table fates() const {
    Table table{"fates", {{"fate"}, {"means"}}, {}};
    std::set<std::string> seen;
    for (const auto& row : candidates_) {
      const auto name = text_of(row, "fate");
      const auto fate = value_of<CandidateFate>(name);
      if (fate && seen.insert(name).second)
        table.rows.push_back({name, fleet_view::cell(sentence_of(*fate))});
    }
    return table;
  }

  Table attempts() const {
    Table table{"attempts",
                {{"engine"}, {"end"}, {"status"}, {"began_s", 4}, {"first_byte_s", 4}, {"ended_s", 4}},
                {}};
    for (const auto& row : rows_of(record_, "attempts"))
      table.rows.push_back(
          {name_of_engine(row), text_of(row, "end"), fleet_view::maybe(number_of(row, "status")),
           fleet_view::maybe(number_of(row, "began_s")), fleet_view::maybe(number_of(row, "first_byte_s")),
           fleet_view::maybe(number_of(row, "ended_s"))});
    return table;
  }

  /// What was not said before; rows of engines and classes mean nothing to people.
  Table facts() const {
    constexpr std::array elsewhere{"candidates", "attempts", "class", "engine", "kept", "arrived_wall_s"};
    Table table{"facts", {{"fact"}, {"value", 4}}, {}};
    for (const auto& [key, value] : record_) {
      if (std::ranges::find(elsewhere, key) != elsewhere.end()) continue;
      table.rows.push_back(
          {std::string(key), key == "snapshot" ? Cell(version_of(record_)) : observe::cell_of(value)});
    }
    return table;
  }

  const dom::object& record_;
  const std::vector<std::string>& engines_;
  std::vector<dom::object> candidates_;
};

template <class F>
Result<std::string> with_record(const std::string& json, F&& write) {
  dom::parser parser;
  dom::object record;
  if (parser.parse(json).get(record) != simdjson::SUCCESS)
    return invalid("the router's answer is not a JSON object");
  return write(record);
}

}  // namespace

Result<std::string> record_as_text(const std::string& json, const std::vector<std::string>& engines,
                                   const std::vector<fleet_view::Table>& reasons) {
  return with_record(json, [&](const dom::object& record) { return Writer(record, engines).run(reasons); });
}

Result<std::string> record_sentence(const std::string& json, const std::vector<std::string>& engines) {
  return with_record(json, [&](const dom::object& record) { return Writer(record, engines).text(); });
}

Result<PlanOfRecord> plan_of_record(const std::string& json) {
  PlanOfRecord out;
  const auto read = with_record(json, [&](const dom::object& record) -> Result<std::string> {
    out = {text_of(record, "decision"), ClusterName(text_of(record, "cluster")),
           text_of(record, "class_name"), version_of(record)};
    return std::string();
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

std::vector<fleet_view::Column> cost_columns() {
  return {{"engine"},     {"fate"},         {"weight", 3},   {"penalty", 2}, {"network_s", 4},
          {"queue_s", 4}, {"prefill_s", 4}, {"decode_s", 4}, {"price_s", 4}, {"total_s", 4}};
}

}  // namespace signalbox::observe
