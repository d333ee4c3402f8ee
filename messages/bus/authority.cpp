#include "messages/bus/authority.hpp"

#include <fmt/format.h>

namespace signalbox::bus {

namespace {

using schema::MessageInfo;

/// True if the message of that kind has a field of that name.
bool has_field(std::uint16_t kind, std::string_view name) {
  bool found = false;
  const auto look = [&]<class T>(std::type_identity<T>) {
    if (T::info.kind == kind)
      schema::for_each_field<T>([&](const auto& f) { found = found || f.name == name; });
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (look(std::type_identity<schema::MessageType<I>>{}), ...);
  }
  (std::make_index_sequence<schema::message_count>());
  return found;
}

/// What stands between two slashes of a topic pattern.
struct Part {
  enum class Must : std::uint8_t { equal_text, name_author, name_role, name_cluster, be_a_name };
  Must must;
  std::string_view text;
};

std::string_view take_part(std::string_view& rest) {
  const auto slash = rest.find('/');
  const auto part = rest.substr(0, slash);
  rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  return part;
}

Part part_of(const MessageInfo& info, std::string_view text) {
  if (!text.starts_with('<')) return {Part::Must::equal_text, text};
  const auto name = text.substr(1, text.size() - 2);
  if (name == "role") return {Part::Must::name_role, name};
  if (name == "cluster") return {Part::Must::name_cluster, name};
  // "id" is a field that repeats the author; what no field fills is the author's id.
  if (name == "id" || !has_field(info.kind, name)) return {Part::Must::name_author, name};
  return {Part::Must::be_a_name, name};
}

const std::vector<Part>& parts_of(const MessageInfo& info) {
  static const auto table = [] {
    std::map<std::uint16_t, std::vector<Part>> out;
    for (const MessageInfo& each : schema::catalog())
      for (std::string_view rest = each.topic; !rest.empty();)
        out[each.kind].push_back(part_of(each, take_part(rest)));
    return out;
  }();
  return table.at(info.kind);
}

bool fits(const Part& part, std::string_view text, const ProcessName& source, const Identity* identity) {
  switch (part.must) {
    case Part::Must::equal_text: return text == part.text;
    case Part::Must::name_author: return text == source.str();
    case Part::Must::name_role:
      return identity == nullptr ? value_of<Role>(text).has_value() : text == name_of(identity->role);
    case Part::Must::name_cluster:
      return identity == nullptr || identity->cluster.empty() ? is_plain_name(text)
                                                              : text == identity->cluster.str();
    case Part::Must::be_a_name: return is_plain_name(text);
  }
  return false;
}

}  // namespace

std::string_view take_nonce(std::string_view& topic) {
  if (!topic.starts_with('@')) return {};
  const auto slash = topic.find('/');
  if (slash == std::string_view::npos) return {};
  const auto nonce = topic.substr(1, slash - 1);
  topic.remove_prefix(slash + 1);
  return nonce;
}

Status check_author(const MessageInfo& info, std::string_view topic, const ProcessName& source,
                    const Identity* identity) {
  if (identity != nullptr && !info.authors.has(identity->role))
    return fail(ErrorKind::denied, fmt::format("a {} may not say {}", name_of(identity->role), info.name),
                std::string(topic));
  std::string_view rest = topic;
  bool fit = topic.ends_with('/');
  for (const Part& part : parts_of(info)) fit = fit && fits(part, take_part(rest), source, identity);
  if (!fit || !rest.empty())
    return fail(ErrorKind::denied, fmt::format("not a topic on which '{}' may say {}", source, info.name),
                std::string(topic), fmt::format("its topics are {}", info.topic));
  return {};
}

}  // namespace signalbox::bus
