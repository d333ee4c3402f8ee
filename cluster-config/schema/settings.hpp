// The declaration of every key that a configuration file may have: the one table behind reading, bounds,
// defaults, nearest-name hints, `--help` and docs/settings.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace signalbox::config {

enum class SettingType : std::uint8_t {
  text,
  name,    ///< a plain name, [A-Za-z0-9._-]
  choice,  ///< one of a list
  integer,
  number,
  duration,  ///< text with a unit: "250ms", "1.5s", "2min"
  address,   ///< host:port, or "+N" for port_base + N on 127.0.0.1
  url,       ///< http://host:port or https://host:port
  endpoint,  ///< tcp://host:port or ipc://path
  list,      ///< of names
  texts,     ///< a list of texts
};

/// One key of one table. Bounds are in the setting's unit (durations: seconds), both included.
struct Setting {
  std::string_view table;  ///< "" is the top of the file; [[x]] and [x] tables are "x", a table in it "x.y"
  std::string_view key;
  SettingType type;
  std::string_view unit;      ///< "" when it has none
  std::string_view fallback;  ///< as it would be written; "" with `required` false: absent
  bool required;
  double low;
  double high;
  std::string_view choices;  ///< of a choice, separated by "|"
  std::string_view sentence;
};

/// One table of the file.
struct SettingTable {
  std::string_view name;
  bool repeated;  ///< [[name]]
  std::string_view sentence;
};

/// What a value of this type is, for an error: "a duration such as \"250ms\"".
std::string_view describe(SettingType type);

std::span<const Setting> settings();
std::span<const SettingTable> setting_tables();

/// What one kind of file may hold.
struct FileKind {
  std::span<const Setting> settings;
  std::span<const SettingTable> tables;
};
/// A fleet's configuration: settings() and setting_tables().
FileKind configuration_file();
/// A file of API keys.
FileKind api_keys_file();

/// docs/settings.md, whole.
std::string settings_as_markdown();
/// The same for a terminal.
std::string settings_as_text();

}  // namespace signalbox::config
