#include "tools/observe/filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace signalbox::observe {
namespace {

using fleet_view::Path;
using Wanted = std::vector<std::string>;

/// Where a message may name a class: itself, or in its rows.
const std::array<Path, 5> class_paths{
    {{"class_name"}, {"rows", "class"}, {"weights", "class"}, {"admits", "class"}, {"served", "class"}}};
const std::array<Path, 2> engine_paths{{{"engine_name"}, {"engine"}}};
const std::array<Path, 1> cluster_paths{{{"cluster"}}};
const std::array<Path, 1> decision_paths{{{"decision"}}};

bool has_part(std::string_view topic, std::string_view part) {
  while (!topic.empty()) {
    const std::size_t end = topic.find('/');
    if (topic.substr(0, end) == part) return true;
    if (end == std::string_view::npos) return false;
    topic.remove_prefix(end + 1);
  }
  return false;
}

template <class Matches>
bool any_or_none_asked(const Wanted& wanted, Matches matches) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), matches);
}

template <class Paths>
bool names_one(const schema::Message& message, const Paths& paths, const Wanted& wanted,
               const fleet_view::RowNames& names) {
  for (const Path& path : paths)
    for (const fleet_view::FieldValue& value : values_at(message, path, names))
      if (const auto* text = std::get_if<std::string>(&value))
        if (std::find(wanted.begin(), wanted.end(), *text) != wanted.end()) return true;
  return false;
}

template <class Paths>
bool may_name(const schema::MessageInfo& info, const Paths& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const Path& path) { return fleet_view::has_path(info, path); });
}

Result<std::vector<const schema::MessageInfo*>> types_named(const Wanted& messages) {
  std::vector<const schema::MessageInfo*> out;
  for (const schema::MessageInfo& known : schema::catalog())
    if (messages.empty()) out.push_back(&known);
  for (const std::string& name : messages) {
    const schema::MessageInfo* info = schema::find_info(name);
    if (info == nullptr) {
      std::string names;
      for (const schema::MessageInfo& known : schema::catalog()) names += fmt::format(" {}", known.name);
      return fail(ErrorKind::not_found, fmt::format("no message is called '{}'", name), {},
                  "there are" + names);
    }
    out.push_back(info);
  }
  return out;
}

}  // namespace

std::string to_text(const Filter& filter) {
  std::string out;
  const auto add = [&](std::string_view option, const Wanted& values) {
    for (const std::string& value : values)
      out += fmt::format("{}--{} {}", out.empty() ? "" : " ", option, value);
  };
  add("topic", filter.topics);
  add("message", filter.messages);
  add("engine", filter.engines);
  add("cluster", filter.clusters);
  add("class", filter.classes);
  add("decision", filter.decisions);
  if (!filter.where.empty()) add("where", {"'" + filter.where + "'"});
  return out;
}

Result<Selection> Selection::make(const Filter& filter) {
  Selection out;
  out.filter_ = filter;
  auto types = types_named(filter.messages);
  if (!types) return tl::unexpected(std::move(types.error()));
  std::erase_if(*types, [&](const schema::MessageInfo* info) {
    return (!filter.classes.empty() && !may_name(*info, class_paths)) ||
           (!filter.decisions.empty() && !may_name(*info, decision_paths));
  });
  if (types->empty())
    return invalid("no message can pass", to_text(filter), "leave out one of these conditions");
  out.types_ = std::move(*types);
  if (!filter.where.empty()) {
    auto where = fleet_view::Expression::parse(filter.where, out.types_);
    if (!where) return tl::unexpected(std::move(where.error()));
    out.where_ = std::move(*where);
  }
  return out;
}

std::vector<std::string> Selection::subscriptions() const {
  if (!filter_.topics.empty()) return filter_.topics;
  if (types_.size() == schema::message_count) return {""};
  std::set<std::string> roots;
  for (const schema::MessageInfo* info : types_) roots.emplace(schema::topic_root(*info));
  return {roots.begin(), roots.end()};
}

bool Selection::by_topic() const {
  return filter_.engines.empty() && filter_.clusters.empty() && filter_.classes.empty() &&
         filter_.decisions.empty() && !where_;
}

bool Selection::passes(const schema::Delivery& delivery, const fleet_view::RowNames& names) const {
  const schema::MessageInfo* info = &schema::info_of(delivery.message);
  const auto in_topic = [&](const std::string& part) { return has_part(delivery.topic, part); };
  return std::find(types_.begin(), types_.end(), info) != types_.end() &&
         any_or_none_asked(filter_.topics,
                           [&](const std::string& prefix) { return delivery.topic.starts_with(prefix); }) &&
         (any_or_none_asked(filter_.engines, in_topic) ||
          names_one(delivery.message, engine_paths, filter_.engines, names)) &&
         (any_or_none_asked(filter_.clusters, in_topic) ||
          names_one(delivery.message, cluster_paths, filter_.clusters, names)) &&
         (filter_.classes.empty() || names_one(delivery.message, class_paths, filter_.classes, names)) &&
         (filter_.decisions.empty() ||
          names_one(delivery.message, decision_paths, filter_.decisions, names)) &&
         (!where_ || where_->holds(delivery, names));
}

}  // namespace signalbox::observe
