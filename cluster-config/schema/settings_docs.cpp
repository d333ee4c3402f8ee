// The settings for readers.
#include <fmt/format.h>

#include "cluster-config/schema/settings.hpp"

namespace signalbox::config {
namespace {

std::string heading(const SettingTable& table) {
  if (table.name.empty()) return "The top of the file";
  return table.repeated ? fmt::format("`[[{}]]`", table.name) : fmt::format("`[{}]`", table.name);
}

std::string choices(const Setting& setting) {
  std::string out(setting.choices);
  for (std::size_t bar = out.find('|'); bar != std::string::npos; bar = out.find('|', bar))
    out.replace(bar, 1, ", ");
  return out;
}

std::string value_of_setting(const Setting& setting) {
  switch (setting.type) {
    case SettingType::choice: return choices(setting);
    case SettingType::duration: return fmt::format("duration, {} s to {} s", setting.low, setting.high);
    case SettingType::integer:
    case SettingType::number:
      return fmt::format("{}, {} to {}{}{}", setting.type == SettingType::integer ? "integer" : "number",
                         setting.low, setting.high, setting.unit.empty() ? "" : " ", setting.unit);
    case SettingType::text: return "text";
    case SettingType::name: return "name";
    case SettingType::address: return "address";
    case SettingType::url: return "URL";
    case SettingType::endpoint: return "endpoint";
    case SettingType::list: return "list of names";
    case SettingType::texts: return "list of texts";
  }
  return {};
}

std::string default_of(const Setting& setting) {
  if (setting.required) return "required";
  return setting.fallback.empty() ? "" : fmt::format("`{}`", setting.fallback);
}

void add_tables(const FileKind& kind, std::string_view level, std::string& out) {
  for (const SettingTable& table : kind.tables) {
    out += fmt::format("\n{} {}\n\n{}\n\n| key | value | default | |\n| --- | --- | --- | --- |\n", level,
                       heading(table), table.sentence);
    for (const Setting& setting : kind.settings)
      if (setting.table == table.name)
        out += fmt::format("| `{}` | {} | {} | {} |\n", setting.key, value_of_setting(setting),
                           default_of(setting), setting.sentence);
  }
}

}  // namespace

std::string settings_as_markdown() {
  std::string out =
      "# Settings\n\n"
      "<!-- Generated from cluster-config/schema/settings.cpp; the test cluster-config/schema rewrites it. "
      "-->\n\n"
      "A configuration is one TOML file: what the fleet is made of and how its processes run. What the fleet "
      "may do is in "
      "the\n[policy](policy.md). A key that is not listed here is refused.\n\n"
      "Durations are texts with a unit: `\"250ms\"`, `\"1.5s\"`, `\"2min\"`. In an address the port `+7` "
      "means `port_base` "
      "+ 7, and\n`+7` alone stands for that port of 127.0.0.1, so that one file can run many times side by "
      "side.\n";
  add_tables(configuration_file(), "##", out);
  out +=
      "\n## The file of API keys\n\n"
      "`router.api_keys` names it, and `signalbox apikey` writes it. It is TOML too. A router reads it at "
      "start and on "
      "SIGHUP;\na file with a mistake leaves the last good one in force.\n";
  add_tables(api_keys_file(), "###", out);
  return out;
}

std::string settings_as_text() {
  std::string out;
  for (const SettingTable& table : setting_tables()) {
    const std::string name = table.name.empty() ? "top of the file"
                             : table.repeated   ? fmt::format("[[{}]]", table.name)
                                                : fmt::format("[{}]", table.name);
    out += fmt::format("{}{}: {}\n", out.empty() ? "" : "\n", name, table.sentence);
    for (const Setting& setting : settings()) {
      if (setting.table != table.name) continue;
      const std::string fallback = setting.required ? " (required)"
                                   : setting.fallback.empty()
                                       ? ""
                                       : fmt::format(" (default {})", setting.fallback);
      out += fmt::format("  {:<20} {}\n  {:<20}   {}{}\n", setting.key, setting.sentence, "",
                         value_of_setting(setting), fallback);
    }
  }
  return out;
}

}  // namespace signalbox::config
