#include "tools/engine_sim/api/faults.hpp"

#include <fmt/format.h>
#include <simdjson.h>

namespace signalbox::engine_sim {
namespace {

namespace json = simdjson::dom;
constexpr std::string_view names =
    "reset, refuse, hang, freeze, slow, error_ratio, die_mid_stream, kv_lost, kv_strange, status";

Status read_flag(std::string_view name, const json::element& value, bool& out) {
  if (value.get(out) != simdjson::SUCCESS) return invalid("expected true or false", std::string(name));
  return {};
}

Status read_number(std::string_view name, const json::element& value, double lo, double hi, double& out) {
  double number = 0;
  bool all = false;
  if (value.get(all) == simdjson::SUCCESS)
    number = all ? 1 : 0;  // a ratio: of all, of none
  else if (value.get(number) != simdjson::SUCCESS)
    return invalid("expected a number", std::string(name));
  if (!(number >= lo && number <= hi))
    return invalid(fmt::format("{} is outside {} to {}", number, lo, hi), std::string(name));
  out = number;
  return {};
}

Status read_fault(std::string_view name, const json::element& value, InjectedFaults& f) {
  if (name == "reset") return {};
  if (name == "refuse") return read_flag(name, value, f.refuse);
  if (name == "hang") return read_flag(name, value, f.hang);
  if (name == "freeze") return read_flag(name, value, f.freeze);
  if (name == "kv_lost") return read_flag(name, value, f.kv_lost);
  if (name == "kv_strange") return read_flag(name, value, f.kv_strange);
  if (name == "slow") return read_number(name, value, 0.01, 1000, f.slow);
  if (name == "error_ratio") return read_number(name, value, 0, 1, f.error_ratio);
  if (name == "die_mid_stream") return read_number(name, value, 0, 1, f.die_mid_stream);
  if (name == "status") {
    std::uint64_t status = 0;
    if (value.get(status) != simdjson::SUCCESS || (status != 0 && (status < 400 || status > 599)))
      return invalid("expected 0 or 400 to 599", "status");
    f.status = static_cast<int>(status);
    return {};
  }
  return invalid(fmt::format("no such fault: {}", name), {}, fmt::format("use {}", names));
}

}  // namespace

Status change_faults(InjectedFaults& faults, std::string_view text) {
  json::parser parser;
  json::object object;
  const auto parsed = parser.parse(text.data(), text.size());
  if (parsed.get(object) != simdjson::SUCCESS)
    return invalid("the body is not a JSON object", {}, fmt::format("name some of {}", names));
  bool reset = false;
  InjectedFaults changed =
      object["reset"].get(reset) == simdjson::SUCCESS && reset ? InjectedFaults{} : faults;
  for (const auto field : object)
    if (const Status read = read_fault(field.key, field.value, changed); !read) return read;
  faults = changed;
  return {};
}

std::string faults_json(const InjectedFaults& f) {
  return fmt::format(
      R"({{"refuse":{},"hang":{},"freeze":{},"slow":{},"error_ratio":{},"die_mid_stream":{},"kv_lost":{},"kv_strange":{},"status":{}}})",
      f.refuse, f.hang, f.freeze, f.slow, f.error_ratio, f.die_mid_stream, f.kv_lost, f.kv_strange, f.status);
}

}  // namespace signalbox::engine_sim
