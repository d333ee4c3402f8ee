#include "tests/support/message_text.hpp"

#include <type_traits>

namespace signalbox::tests {

namespace {

template <class V>
void parse(Reader& in, V& value);

template <schema::Described T>
void read_field(Reader& in, const std::string& name, T& out) {
  bool known = false;
  schema::for_each_field<T>([&](const auto& f) {
    if (f.name == name) known = true, parse(in, out.*f.place);
  });
  if (!known) in.fail(fmt::format("no field '{}'", name));
}

template <schema::Described T>
void read_fields(Reader& in, T& out, char end) {
  while (end ? !in.take(end) : !in.done()) {
    const std::string name = in.word();
    if (name.empty() || !in.take('=')) in.fail("field=value expected");
    read_field(in, name, out);
  }
}

Term term_of(const std::string& text) {
  return {number<std::uint64_t>(text), ProcessName(text.substr(text.find('@') + 1))};
}

template <class V>
void parse(Reader& in, V& value) {
  if constexpr (schema::is_optional<V>::value) {
    parse(in, value.emplace());
  } else if constexpr (std::is_same_v<V, schema::Bytes>) {
    const std::string text = in.word();
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
      value.push_back(number<std::uint8_t>(text.substr(i, 2), 16));
  } else if constexpr (schema::is_vector<V>::value) {
    if (!in.take('[')) in.fail("[ expected");
    while (!in.take(']')) parse(in, value.emplace_back());
  } else if constexpr (schema::Described<V>) {
    if (!in.take('{')) in.fail("{ expected");
    read_fields(in, value, '}');
  } else {
    const std::string text = in.word();
    if constexpr (std::is_same_v<V, bool>) {
      value = text == "true";
    } else if constexpr (std::is_same_v<V, Duration>) {
      value = from_seconds(number<double>(text));
    } else if constexpr (std::is_same_v<V, std::string>) {
      value = text;
    } else if constexpr (schema::is_name<V>::value) {
      value = V(text);
    } else if constexpr (schema::is_index<V>::value) {
      value = V(number<std::size_t>(text));
    } else if constexpr (std::is_same_v<V, Digest>) {
      value = text.starts_with('#') ? digest_of(text.substr(1)) : Digest::from_hex(text).value();
    } else if constexpr (std::is_same_v<V, Incarnation>) {
      value = {number<std::uint64_t>(text), number<std::uint64_t>(text.substr(text.find(':') + 1))};
    } else if constexpr (std::is_same_v<V, Term>) {
      value = term_of(text);
    } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
      const auto dot = text.rfind('.');
      value = {term_of(text.substr(0, dot)), number<std::uint64_t>(text.substr(dot + 1))};
    } else if constexpr (DescribedEnum<V>) {
      const auto found = value_of<V>(text);
      if (!found) in.fail(fmt::format("no value '{}'", text));
      value = *found;
    } else if constexpr (std::is_floating_point_v<V>) {
      value = number<double>(text);
    } else {
      value = number<V>(text);
    }
  }
}

template <class V>
std::string shown(const V& value);

/// "field=value field=value" of what differs from a fresh T.
template <schema::Described T>
std::string show_fields(const T& value) {
  const T fresh{};
  std::string out;
  schema::for_each_field<T>([&](const auto& f) {
    const auto& v = value.*f.place;
    using V = std::decay_t<decltype(v)>;
    if constexpr (schema::is_vector<V>::value) {
      if (v.empty()) return;
    } else if constexpr (requires { v == fresh.*f.place; }) {
      if (v == fresh.*f.place) return;
    }
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", f.name, shown(v));
  });
  return out;
}

template <class V>
std::string shown(const V& value) {
  if constexpr (schema::is_optional<V>::value) {
    return shown(*value);
  } else if constexpr (std::is_same_v<V, schema::Bytes>) {
    return to_hex(value);
  } else if constexpr (schema::is_vector<V>::value) {
    std::string out;
    for (const auto& item : value) out += (out.empty() ? "" : " ") + shown(item);
    return "[" + out + "]";
  } else if constexpr (schema::Described<V>) {
    return "{" + show_fields(value) + "}";
  } else if constexpr (std::is_same_v<V, Duration>) {
    return fmt::format("{:.6g}", to_seconds(value));
  } else if constexpr (std::is_same_v<V, std::string>) {
    if (value.size() > 160) return fmt::format("<{} bytes>", value.size());
    const bool bare = !value.empty() && value.find_first_of(" =]}\"\n") == std::string::npos;
    if (bare) return value;
    std::string out = "\"";
    for (const char c : value) out += c == '\n' ? std::string("\\n") : std::string(1, c == '"' ? '\'' : c);
    return out + '"';
  } else if constexpr (schema::is_name<V>::value) {
    return value.str();
  } else if constexpr (schema::is_index<V>::value) {
    return value.valid() ? std::to_string(value.value) : "none";
  } else if constexpr (std::is_same_v<V, Digest>) {
    return value.brief();
  } else if constexpr (std::is_same_v<V, Incarnation>) {
    return fmt::format("{}:{}", value.counter, value.random);
  } else if constexpr (std::is_same_v<V, Term>) {
    return fmt::format("{}@{}", value.counter, value.optimizer);
  } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
    return fmt::format("{}", value);
  } else if constexpr (DescribedEnum<V>) {
    return std::string(name_of(value));
  } else if constexpr (std::is_floating_point_v<V>) {
    return fmt::format("{:.5g}", value);
  } else {
    return fmt::format("{}", value);
  }
}

std::string show_message(const schema::Message& message) {
  return std::visit(
      []<class T>(const T& m) {
        const std::string fields = show_fields(m);
        return std::string(T::info.name) + (fields.empty() ? "" : " ") + fields;
      },
      message);
}

template <std::size_t I = 0>
schema::Message parse_message(Reader& in, const std::string& name) {
  if constexpr (I == schema::message_count) {
    in.fail(fmt::format("no message '{}'", name));
  } else {
    using T = schema::MessageType<I>;
    if (T::info.name != name) return parse_message<I + 1>(in, name);
    T message;
    read_fields(in, message, '\0');
    return message;
  }
}

}  // namespace

void read_value(Reader& in, ProcessName& value) { parse(in, value); }
void read_value(Reader& in, Duration& value) { parse(in, value); }
void read_value(Reader& in, Incarnation& value) { parse(in, value); }
schema::Message read_message(Reader& in, const std::string& name) { return parse_message(in, name); }
std::string show_value(const std::string& value) { return shown(value); }
std::string show(const schema::Message& message) { return show_message(message); }

}  // namespace signalbox::tests
