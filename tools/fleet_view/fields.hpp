// The values of a message by name, for filters: a path such as "scrape", "reading_age_s" or "weights.engine" is looked
// up in the message's declaration. Lists are looked through: a path into one names a value of each of its elements.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "messages/schema/catalog.hpp"

namespace signalbox::fleet_view {

/// What a field holds. Numbers are doubles, durations in seconds; enums, names and hashes are text.
using FieldValue = std::variant<std::monostate, bool, double, std::string>;

using Path = std::vector<std::string>;
/// "weights.engine" in parts.
Path parse_path(std::string_view text);

/// Calls names for rows of tables, where a message has them.
struct RowNames {
  std::function<std::string(const Digest& table, EngineIndex)> engine;
  std::function<std::string(const Digest& policy, ClassIndex)> request_class;
};

/// Every value that the path names in the message. An index has two: its number, and its name if `names` knows it.
std::vector<FieldValue> values_at(const schema::Message& message, const Path& path, const RowNames& names);

/// Whether messages of this type have that path at all.
bool has_path(const schema::MessageInfo& info, const Path& path);
/// The fields of a message type, as JSON names them.
std::vector<std::string> field_names(const schema::MessageInfo& info);

}  // namespace signalbox::fleet_view
