#include "tools/observe/explain.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <simdjson.h>

#include <cstdio>
#include <memory>

#include "tools/fleet_view/table.hpp"

namespace signalbox::observe {
namespace {

using fleet_view::Cell;
using fleet_view::Table;
namespace dom = simdjson::dom;

struct Answer {
  long status = 0;
  std::string body;
};

std::size_t collect(char* bytes, std::size_t size, std::size_t count, void* out) {
  static_cast<std::string*>(out)->append(bytes, size * count);
  return size * count;
}

Result<Answer> get(const std::string& url, Duration longest) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  Answer answer;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(longest / 1ms));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return fail(ErrorKind::unavailable, curl_easy_strerror(code), url);
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

Cell cell_of(const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::STRING: return std::string(std::string_view(value));
    case dom::element_type::BOOL: return bool(value);
    case dom::element_type::INT64: return std::int64_t(value);
    case dom::element_type::UINT64: return static_cast<std::int64_t>(std::uint64_t(value));
    case dom::element_type::DOUBLE: return double(value);
    case dom::element_type::NULL_VALUE: return {};
    default: return simdjson::minify(value);
  }
}

/// A list of objects as a table; the first one's keys are the columns.
Table table_of(std::string_view name, const dom::array& list) {
  Table table{std::string(name), {}, {}};
  for (const dom::element entry : list) {
    dom::object object;
    if (entry.get(object) != simdjson::SUCCESS) continue;
    std::vector<Cell> row;
    for (const auto& [key, value] : object) {
      if (table.rows.empty()) table.columns.push_back({key, 5});
      row.push_back(cell_of(value));
    }
    row.resize(table.columns.size());
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool is_list_of_objects(const dom::element& value) {
  dom::array list;
  return value.get(list) == simdjson::SUCCESS && (list.size() == 0 || list.at(0).is_object());
}

}  // namespace

Result<std::string> record_as_text(const std::string& json) {
  dom::parser parser;
  dom::object record;
  if (parser.parse(json).get(record) != simdjson::SUCCESS)
    return invalid("the router's answer is not a JSON object");
  Table facts{"decision", {{"fact"}, {"value", 4}}, {}};
  std::vector<Table> tables;
  for (const auto& [key, value] : record) {
    dom::array list;
    if (is_list_of_objects(value) && value.get(list) == simdjson::SUCCESS)
      tables.push_back(table_of(key, list));
    else
      facts.rows.push_back({std::string(key), cell_of(value)});
  }
  tables.insert(tables.begin(), std::move(facts));
  return as_text(tables);
}

Status explain(const ExplainOptions& options) {
  const auto fleet = cli::open_fleet(options.fleet);
  if (!fleet) return tl::unexpected(fleet.error());
  std::string troubles;
  bool answered = false;
  for (const config::Process& process : fleet->config.processes) {
    if (process.role != "cluster-router" || process.operator_listen.empty()) continue;
    const auto answer = get(fmt::format("http://{}/explain/{}", process.operator_listen, options.decision),
                            from_seconds(options.wait_s));
    if (!answer) {
      troubles += fmt::format("{}{}: {}", troubles.empty() ? "" : "; ", process.id, answer.error().text());
      continue;
    }
    answered = true;
    if (answer->status != 200) continue;
    const auto text = options.json ? Result<std::string>(answer->body + "\n") : record_as_text(answer->body);
    if (!text) return tl::unexpected(text.error());
    fmt::print("{}", *text);
    return {};
  }
  if (!answered)
    return fail(ErrorKind::unavailable,
                troubles.empty() ? "the fleet has no router with an operator port" : troubles,
                "no router could be asked", "is the fleet up? 'signalbox status' tells");
  return fail(
      ErrorKind::not_found, fmt::format("no router keeps decision '{}'", options.decision), troubles,
      "copy the id from an answer's x-signalbox-decision; each router keeps only its latest decisions");
}

}  // namespace signalbox::observe
