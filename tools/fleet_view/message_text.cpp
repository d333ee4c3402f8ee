#include "tools/fleet_view/message_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "tools/fleet_view/table.hpp"

namespace signalbox::fleet_view {
namespace {

using schema::Described;

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

/// A time in the unit that a person would use.
std::string time_text(double seconds) {
  const double size = std::abs(seconds);
  if (size == 0) return "0 s";
  if (size < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (size < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (size < 600) return fmt::format("{:.3g} s", seconds);
  return fmt::format("{:.0f} s", seconds);
}

struct Hashes {
  Digest table{};
  Digest policy{};
};

template <class T>
Hashes hashes_of(const T& message) {
  Hashes out;
  if constexpr (requires { message.table; }) out.table = message.table;
  if constexpr (requires { message.policy; })
    if constexpr (std::is_same_v<std::decay_t<decltype(message.policy)>, Digest>) out.policy = message.policy;
  return out;
}

/// The text of values that are no lists of rows.
class Writer {
 public:
  Writer(const Hashes& hashes, const RowNames& names) : hashes_(hashes), names_(names) {}

  template <class V>
  std::string value(const V& v, std::string_view unit) const {
    if constexpr (schema::is_optional<V>::value) {
      return v ? value(*v, unit) : "-";
    } else if constexpr (std::is_same_v<V, bool>) {
      return v ? "yes" : "no";
    } else if constexpr (std::is_same_v<V, std::string>) {
      return v.empty() ? "-" : v.find_first_of(" \n") == std::string::npos ? v : quoted(v);
    } else if constexpr (schema::is_name<V>::value) {
      return v.empty() ? "-" : v.str();
    } else if constexpr (std::is_same_v<V, schema::Bytes>) {
      return v.size() > 16 ? fmt::format("{} bytes", v.size()) : to_hex(v);
    } else if constexpr (std::is_same_v<V, Digest>) {
      return v.is_zero() ? "-" : v.brief();
    } else if constexpr (std::is_same_v<V, Duration>) {
      return time_text(to_seconds(v));
    } else if constexpr (DescribedEnum<V>) {
      return std::string(name_of(v));
    } else if constexpr (schema::is_index<V>::value) {
      return index(v);
    } else if constexpr (std::is_same_v<V, Incarnation>) {
      return fmt::format("{}", v.counter);
    } else if constexpr (std::is_same_v<V, Term>) {
      return fmt::format("{}@{}", v.counter, v.optimizer);
    } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
      return v.sequence == 0 ? "-" : fmt::format("{}", v);
    } else if constexpr (schema::is_vector<V>::value) {
      return list(v, unit);
    } else if constexpr (Described<V>) {
      return "...";
    } else if (unit == "s") {
      return time_text(static_cast<double>(v));
    } else {
      const bool plain = unit.empty() || unit == "share" || unit == "ratio" || unit == "s/s";
      return plain ? number_text(static_cast<double>(v))
                   : fmt::format("{} {}", number_text(static_cast<double>(v)), unit);
    }
  }

 private:
  static std::string quoted(const std::string& text) {
    std::string out = text.substr(0, 200);
    for (char& c : out)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    return fmt::format("\"{}{}\"", out, text.size() > 200 ? "..." : "");
  }

  template <class V>
  std::string index(V v) const {
    if (!v.valid()) return "-";
    std::string name;
    if constexpr (std::is_same_v<V, EngineIndex>)
      if (names_.engine) name = names_.engine(hashes_.table, v);
    if constexpr (std::is_same_v<V, ClassIndex>)
      if (names_.request_class) name = names_.request_class(hashes_.policy, v);
    return name.empty() ? fmt::format("#{}", v.value) : name;
  }

  template <class V>
  std::string list(const V& items, std::string_view unit) const {
    using Item = typename V::value_type;
    if (Described<Item> || items.size() > 4) return fmt::format("[{}]", items.size());
    std::string out = "[";
    for (const auto& item : items) out += (out.size() > 1 ? " " : "") + value(item, unit);
    return out + "]";
  }

  const Hashes& hashes_;
  const RowNames& names_;
};

/// "running" but "reading_age_s": values bring their units, names do not.
std::string_view short_name(std::string_view name) {
  return name.ends_with("_s") ? name.substr(0, name.size() - 2) : name;
}

template <class Row>
Table table_of(std::string_view name, const std::vector<Row>& rows, const Writer& writer) {
  Table out{fmt::format("  {} ({})", name, rows.size()), {}, {}};
  schema::for_each_field<Row>([&](const auto& f) { out.columns.push_back({short_name(f.name)}); });
  for (const Row& row : rows) {
    auto& cells = out.rows.emplace_back();
    schema::for_each_field<Row>(
        [&](const auto& f) { cells.emplace_back(writer.value(row.*f.place, f.unit_name)); });
  }
  return out;
}

}  // namespace

std::string line_of(const schema::Delivery& delivery, const RowNames& names) {
  std::string out =
      fmt::format("{:<16} {:<28} {:<13} #{:<6} {:>8}", schema::info_of(delivery.message).name, delivery.topic,
                  delivery.envelope.source, delivery.envelope.sequence, time_text(to_seconds(delivery.age)));
  std::visit(
      [&]<class T>(const T& m) {
        const Hashes hashes = hashes_of(m);
        const Writer writer(hashes, names);
        schema::for_each_field<T>([&](const auto& f) {
          using Member = typename std::decay_t<decltype(f)>::member;
          const Member& member = m.*f.place;
          if constexpr (schema::is_optional<Member>::value)
            if (!member) return;
          const std::string text = writer.value(member, f.unit_name);
          if (text != "-" && text != "[]") out += fmt::format("  {} {}", short_name(f.name), text);
        });
      },
      delivery.message);
  return out;
}

std::string block_of(const schema::Delivery& delivery, const RowNames& names) {
  const schema::MessageInfo& info = schema::info_of(delivery.message);
  std::string out =
      fmt::format("{}: {}\n  on {} from {}, number {}, {} old\n", info.name, info.sentence, delivery.topic,
                  delivery.envelope.source, delivery.envelope.sequence, time_text(to_seconds(delivery.age)));
  std::vector<Table> tables;
  std::visit(
      [&]<class T>(const T& m) {
        const Hashes hashes = hashes_of(m);
        const Writer writer(hashes, names);
        schema::for_each_field<T>([&](const auto& f) {
          using Member = typename std::decay_t<decltype(f)>::member;
          const Member& member = m.*f.place;
          if constexpr (schema::is_vector<Member>::value) {
            if constexpr (Described<typename Member::value_type>) {
              if (!member.empty()) tables.push_back(table_of(f.name, member, writer));
              return;
            }
          }
          out += fmt::format("  {:<24} {:<20} {}\n", short_name(f.name), writer.value(member, f.unit_name),
                             f.sentence);
        });
      },
      delivery.message);
  for (const Table& table : tables) out += as_text({table});
  return out;
}

}  // namespace signalbox::fleet_view
