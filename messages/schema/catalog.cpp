#include "messages/schema/catalog.hpp"

#include <fmt/format.h>

#include "messages/schema/visit.hpp"

namespace signalbox::schema {

Message::Message() = default;
Message::Message(const Message&) = default;
Message::Message(Message&&) noexcept = default;
Message& Message::operator=(const Message&) = default;
Message& Message::operator=(Message&&) noexcept = default;
Message::~Message() = default;

namespace {

template <std::size_t... I>
constexpr std::array<MessageInfo, message_count> collect(std::index_sequence<I...>) {
  return {MessageType<I>::info...};
}
constexpr auto all = collect(std::make_index_sequence<message_count>());

constexpr bool kinds_unique() {
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j)
      if (all[i].kind == all[j].kind || all[i].name == all[j].name) return false;
  return true;
}
static_assert(kinds_unique(), "two messages share a kind or a name");

/// The text of the field that a topic's placeholder names, or `author`.
template <class T>
std::string placeholder(const T& message, std::string_view name, const ProcessName& author) {
  std::string out = author.str();
  for_each_field<T>([&](const auto& f) {
    if (f.name != name) return;
    using Member = typename std::decay_t<decltype(f)>::member;
    if constexpr (is_name<Member>::value)
      out = (message.*f.place).str();
    else if constexpr (DescribedEnum<Member>)
      out = std::string(name_of(message.*f.place));
  });
  return out;
}

}  // namespace

const std::array<MessageInfo, message_count>& catalog() { return all; }

const MessageInfo* find_info(std::uint16_t kind) {
  for (const auto& info : all)
    if (info.kind == kind) return &info;
  return nullptr;
}

const MessageInfo* find_info(std::string_view name) {
  for (const auto& info : all)
    if (info.name == name) return &info;
  return nullptr;
}

const MessageInfo& info_of(const Message& message) { return all[message.index()]; }

std::string topic_of(const Message& message, const ProcessName& author) {
  return std::visit(
      [&]<class T>(const T& m) {
        std::string out;
        std::string_view rest = T::info.topic;
        while (!rest.empty()) {
          const auto open = rest.find('<');
          out += rest.substr(0, open);
          if (open == std::string_view::npos) break;
          const auto close = rest.find('>', open);
          out += placeholder(m, rest.substr(open + 1, close - open - 1), author);
          rest.remove_prefix(close + 1);
        }
        return out;
      },
      message);
}

std::string_view topic_root(const MessageInfo& info) { return info.topic.substr(0, info.topic.find('<')); }

Status check(const Message& message) {
  return std::visit([]<class T>(const T& m) { return check_fields(m); }, message);
}

}  // namespace signalbox::schema
