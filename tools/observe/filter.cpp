#include "tools/observe/filter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "messages/codec/codec.hpp"

namespace signalbox::observe {
namespace {

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
bool any_or_none_asked(const std::vector<std::string>& wanted, Matches matches) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), matches);
}

}  // namespace

Result<std::vector<std::string>> subscriptions(const Filter& filter) {
  std::vector<std::string> roots;
  for (const std::string& name : filter.messages) {
    const schema::MessageInfo* info = schema::find_info(name);
    if (info == nullptr) {
      std::string names;
      for (const schema::MessageInfo& known : schema::catalog()) names += fmt::format(" {}", known.name);
      return fail(ErrorKind::not_found, fmt::format("no message is called '{}'", name), {},
                  "there are" + names);
    }
    roots.emplace_back(schema::topic_root(*info));
  }
  if (!filter.topics.empty()) return filter.topics;
  if (roots.empty()) roots.emplace_back();
  return roots;
}

bool passes(const Filter& filter, const schema::Delivery& delivery) {
  const std::string_view name = schema::info_of(delivery.message).name;
  return any_or_none_asked(filter.messages, [&](const std::string& wanted) { return wanted == name; }) &&
         any_or_none_asked(filter.topics,
                           [&](const std::string& prefix) { return delivery.topic.starts_with(prefix); }) &&
         any_or_none_asked(filter.engines,
                           [&](const std::string& part) { return has_part(delivery.topic, part); }) &&
         any_or_none_asked(filter.clusters,
                           [&](const std::string& part) { return has_part(delivery.topic, part); });
}

std::string line_of(const schema::Delivery& delivery) {
  return fmt::format("{:<16} {:<36} {:<14} #{:<6} {:>8.1f} ms  {}", schema::info_of(delivery.message).name,
                     delivery.topic, delivery.envelope.source, delivery.envelope.sequence,
                     to_seconds(delivery.age) * 1e3, codec::to_json(delivery.message));
}

}  // namespace signalbox::observe
