#include "tools/fleet_view/fields.hpp"

#include <fmt/format.h>

#include <span>
#include <type_traits>
#include <utility>

namespace signalbox::fleet_view {
namespace {

using schema::Described;
using Parts = std::span<const std::string>;

template <class V>
constexpr bool is_duration_v = std::is_same_v<V, Duration> || std::is_same_v<V, std::optional<Duration>>;

/// As JSON has it: durations say their unit.
template <class Member>
std::string json_name(std::string_view name) {
  return std::string(name) + (is_duration_v<Member> && !name.ends_with("_s") ? "_s" : "");
}

template <class Member>
bool is_called(std::string_view name, const std::string& part) {
  return part == name || part == json_name<Member>(name);
}

/// The hashes by which a message's rows get their names.
struct Context {
  const RowNames& names;
  Digest table{};
  Digest policy{};
};

template <class T>
Context context_of(const T& message, const RowNames& names) {
  Context out{names};
  if constexpr (requires { message.table; }) out.table = message.table;
  if constexpr (requires { message.policy; })
    if constexpr (std::is_same_v<std::decay_t<decltype(message.policy)>, Digest>) out.policy = message.policy;
  return out;
}

class Collector {
 public:
  explicit Collector(const Context& context) : context_(context) {}
  std::vector<FieldValue> out;

  template <Described T>
  void fields(const T& value, Parts path) {
    schema::for_each_field<T>([&](const auto& f) {
      using Member = typename std::decay_t<decltype(f)>::member;
      if (is_called<Member>(f.name, path.front())) any(value.*f.place, path.subspan(1));
    });
  }

 private:
  template <class V>
  void any(const V& v, Parts rest) {
    if constexpr (schema::is_optional<V>::value) {
      if (v) any(*v, rest);
    } else if constexpr (std::is_same_v<V, schema::Bytes>) {
      if (rest.empty()) out.emplace_back(to_hex(v));
    } else if constexpr (schema::is_vector<V>::value) {
      if (rest.empty() && Described<typename V::value_type>)
        return out.emplace_back(double(v.size())), void();
      for (const auto& item : v) any(item, rest);
    } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
      if (rest.empty()) return out.emplace_back(fmt::format("{}", v)), void();
      if (rest.front() == "sequence") any(v.sequence, rest.subspan(1));
      if (rest.front() == "term") any(v.term, rest.subspan(1));
    } else if constexpr (std::is_same_v<V, Term>) {
      if (rest.empty()) return out.emplace_back(fmt::format("{}@{}", v.counter, v.optimizer)), void();
      if (rest.front() == "counter") any(v.counter, rest.subspan(1));
      if (rest.front() == "optimizer") any(v.optimizer, rest.subspan(1));
    } else if constexpr (std::is_same_v<V, Incarnation>) {
      if (rest.empty() || rest.front() == "counter") out.emplace_back(static_cast<double>(v.counter));
    } else if constexpr (Described<V>) {
      if (!rest.empty()) fields(v, rest);
    } else if (rest.empty()) {
      scalar(v);
    }
  }

  template <class V>
  void scalar(const V& v) {
    if constexpr (std::is_same_v<V, bool>) {
      out.emplace_back(v);
    } else if constexpr (std::is_same_v<V, std::string>) {
      out.emplace_back(v);
    } else if constexpr (schema::is_name<V>::value) {
      out.emplace_back(v.str());
    } else if constexpr (std::is_same_v<V, Digest>) {
      out.emplace_back(v.hex());
    } else if constexpr (std::is_same_v<V, Duration>) {
      out.emplace_back(to_seconds(v));
    } else if constexpr (DescribedEnum<V>) {
      out.emplace_back(std::string(name_of(v)));
    } else if constexpr (schema::is_index<V>::value) {
      if (!v.valid()) return;
      out.emplace_back(static_cast<double>(v.value));
      if constexpr (std::is_same_v<V, EngineIndex>)
        if (context_.names.engine) out.emplace_back(context_.names.engine(context_.table, v));
      if constexpr (std::is_same_v<V, ClassIndex>)
        if (context_.names.request_class) out.emplace_back(context_.names.request_class(context_.policy, v));
    } else {
      out.emplace_back(static_cast<double>(v));
    }
  }

  const Context& context_;
};

template <class V>
struct Element {
  using type = V;
};
template <class V>
struct Element<std::vector<V>> {
  using type = V;
};
template <class V>
struct Element<std::optional<V>> {
  using type = V;
};

/// The same walk over types alone.
template <class V>
bool type_has(Parts path) {
  using E = typename Element<V>::type;
  if (path.empty()) return !Described<V>;
  const std::string& first = path.front();
  if constexpr (std::is_same_v<E, SnapshotVersion>)
    return (first == "sequence" && path.size() == 1) || (first == "term" && type_has<Term>(path.subspan(1)));
  if constexpr (std::is_same_v<E, Term>)
    return path.size() == 1 && (first == "counter" || first == "optimizer");
  if constexpr (std::is_same_v<E, Incarnation>) return path.size() == 1 && first == "counter";
  bool found = false;
  if constexpr (Described<E>)
    schema::for_each_field<E>([&](const auto& f) {
      using Member = typename std::decay_t<decltype(f)>::member;
      found = found || (is_called<Member>(f.name, first) && type_has<Member>(path.subspan(1)));
    });
  return found;
}

/// Calls `visit` with a default message of this declaration.
template <class F, std::size_t... I>
void with_type_of(const schema::MessageInfo& info, F&& visit, std::index_sequence<I...>) {
  const auto one = [&]<class T>(const T*) {
    if (T::info.kind == info.kind) visit.template operator()<T>();
  };
  (one(static_cast<const schema::MessageType<I>*>(nullptr)), ...);
}
constexpr auto all_types = std::make_index_sequence<schema::message_count>();

}  // namespace

Path parse_path(std::string_view text) {
  Path out;
  for (;;) {
    const std::size_t dot = text.find('.');
    out.emplace_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return out;
    text.remove_prefix(dot + 1);
  }
}

std::vector<FieldValue> values_at(const schema::Message& message, const Path& path, const RowNames& names) {
  if (path.empty()) return {};
  return std::visit(
      [&](const auto& m) {
        const Context context = context_of(m, names);
        Collector collector(context);
        collector.fields(m, path);
        return std::move(collector.out);
      },
      message);
}

bool has_path(const schema::MessageInfo& info, const Path& path) {
  bool found = false;
  if (path.empty()) return false;
  with_type_of(
      info, [&]<class T>() { found = type_has<T>(path); }, all_types);
  return found;
}

std::vector<std::string> field_names(const schema::MessageInfo& info) {
  std::vector<std::string> out;
  with_type_of(
      info,
      [&]<class T>() {
        schema::for_each_field<T>([&](const auto& f) {
          out.push_back(json_name<typename std::decay_t<decltype(f)>::member>(f.name));
        });
      },
      all_types);
  return out;
}

}  // namespace signalbox::fleet_view
