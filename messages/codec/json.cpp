#include <fmt/format.h>

#include "messages/base/json_text.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::codec {

namespace {

using schema::Described;
using schema::for_each_field;

class JsonWriter {
 public:
  std::string out;

  void text(std::string_view s) { append_json_string(out, s); }
  template <class N>
  void number(N n) {
    fmt::format_to(std::back_inserter(out), "{}", n);
  }
  void real(double d) { std::isfinite(d) ? number(d) : void(out += "null"); }
  void key(std::string_view name, std::string_view suffix = {}) {
    if (out.back() != '{') out += ',';
    out += '"', out += name, out += suffix, out += "\":";
  }
};

template <class V>
constexpr bool is_duration_v = std::is_same_v<V, Duration> || std::is_same_v<V, std::optional<Duration>>;

template <Described T>
void write_fields(JsonWriter& json, const T& value);

template <class V>
void write(JsonWriter& json, const V& v) {
  if constexpr (schema::is_optional<V>::value) {
    write(json, *v);
  } else if constexpr (std::is_same_v<V, std::string>) {
    json.text(v);
  } else if constexpr (schema::is_name<V>::value) {
    json.text(v.str());
  } else if constexpr (std::is_same_v<V, Bytes>) {
    json.text(to_hex(v));
  } else if constexpr (std::is_same_v<V, Digest>) {
    json.text(v.hex());
  } else if constexpr (std::is_same_v<V, bool>) {
    json.out += v ? "true" : "false";
  } else if constexpr (std::is_same_v<V, double>) {
    json.real(v);
  } else if constexpr (std::is_same_v<V, Duration>) {
    json.real(to_seconds(v));
  } else if constexpr (DescribedEnum<V>) {
    json.text(name_of(v));
  } else if constexpr (schema::is_index<V>::value) {
    v.valid() ? json.number(v.value) : void(json.out += "null");
  } else if constexpr (std::is_same_v<V, Incarnation>) {
    json.out += '{';
    json.key("counter"), json.number(v.counter);
    json.key("random"), json.number(v.random);
    json.out += '}';
  } else if constexpr (std::is_same_v<V, Term>) {
    json.out += '{';
    json.key("counter"), json.number(v.counter);
    json.key("optimizer"), json.text(v.optimizer.str());
    json.out += '}';
  } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
    json.out += '{';
    json.key("term"), write(json, v.term);
    json.key("sequence"), json.number(v.sequence);
    json.out += '}';
  } else if constexpr (schema::is_vector<V>::value) {
    json.out += '[';
    bool first = true;
    for (const auto& item : v) {
      if (!std::exchange(first, false)) json.out += ',';
      write(json, item);
    }
    json.out += ']';
  } else if constexpr (Described<V>) {
    write_fields(json, v);
  } else {
    json.number(v);
  }
}

template <Described T>
void write_fields(JsonWriter& json, const T& value) {
  json.out += '{';
  for_each_field<T>([&](const auto& f) {
    using Member = typename std::decay_t<decltype(f)>::member;
    const Member& member = value.*f.place;
    if constexpr (schema::is_optional<Member>::value)
      if (!member) return;
    json.key(f.name, is_duration_v<Member> && !f.name.ends_with("_s") ? "_s" : "");
    write(json, member);
  });
  json.out += '}';
}

}  // namespace

std::string to_json(const schema::Message& message) {
  JsonWriter json;
  std::visit([&](const auto& m) { write_fields(json, m); }, message);
  return std::move(json.out);
}

std::string to_json(const schema::Delivery& delivery) {
  JsonWriter json;
  const schema::Envelope& e = delivery.envelope;
  json.out += '{';
  json.key("topic"), json.text(delivery.topic);
  json.key("message"), json.text(schema::info_of(delivery.message).name);
  json.key("version"), json.number(e.version);
  json.key("source"), json.text(e.source.str());
  json.key("incarnation"), write(json, e.incarnation);
  json.key("sequence"), json.number(e.sequence);
  json.key("age_s"), json.real(to_seconds(delivery.age));
  json.key("sent_s"), json.real(to_seconds(e.sent));
  json.key("sent_wall_s"), json.real(to_seconds(e.sent_wall));
  json.key("config_fingerprint"), json.text(fmt::format("{:016x}", e.config_fingerprint));
  json.key("body"), json.out += to_json(delivery.message);
  json.out += '}';
  return std::move(json.out);
}

}  // namespace signalbox::codec
