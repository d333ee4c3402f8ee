#include "tools/simulate/trace_file.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <fstream>

namespace signalbox::simulate {
namespace {

namespace json = simdjson::dom;
constexpr std::uint32_t block_tokens = 512;

// All but the last block are whole.
bool read_row(const json::element& line, double speed, TraceRow& row) {
  double timestamp_ms = 0;
  std::uint64_t input = 0, output = 0;
  json::array ids;
  if (line["timestamp"].get(timestamp_ms) || line["input_length"].get(input) ||
      line["output_length"].get(output) || line["hash_ids"].get(ids))
    return false;
  row.at = from_seconds(timestamp_ms / 1e3 / speed);
  row.output_tokens = static_cast<std::uint32_t>(std::max<std::uint64_t>(output, 1));
  for (const json::element id : ids) {
    std::uint64_t value = 0;
    if (id.get(value)) return false;
    const std::uint64_t left = input - std::min(input, tokens_of(row.prompt));
    row.prompt.push_back(
        {value + 1, static_cast<std::uint32_t>(std::min<std::uint64_t>(left, block_tokens))});
  }
  return !row.prompt.empty();
}

void spread(std::vector<TraceRow>& rows, double bucket_s) {
  for (std::size_t first = 0; bucket_s > 0 && first < rows.size();) {
    std::size_t end = first;
    while (end < rows.size() && rows[end].at == rows[first].at) ++end;
    const double step_s = bucket_s / static_cast<double>(end - first);
    for (std::size_t i = first + 1; i < end; ++i)
      rows[i].at += from_seconds(step_s * static_cast<double>(i - first));
    first = end;
  }
}

}  // namespace

Result<std::vector<TraceRow>> read_trace(const std::string& file, const TraceOptions& options) {
  if (!(options.speed > 0)) return invalid("the trace's speed is not positive", file);
  std::ifstream in(file);
  if (!in) return fail(ErrorKind::io, "cannot read it", file, "check the path");
  std::vector<TraceRow> rows;
  json::parser parser;
  std::string line;
  while (rows.size() < options.most && std::getline(in, line)) {
    json::element parsed;
    TraceRow row;
    if (parser.parse(line).get(parsed) || !read_row(parsed, options.speed, row))
      return invalid("not a row of a trace", fmt::format("{}:{}", file, rows.size() + 1),
                     "each line has timestamp, input_length, output_length and hash_ids");
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TraceRow& a, const TraceRow& b) { return a.at < b.at; });
  spread(rows, to_seconds(options.bucket) / options.speed);
  return rows;
}

}  // namespace signalbox::simulate
