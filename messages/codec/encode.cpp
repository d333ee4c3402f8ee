#include <msgpack.hpp>

#include "messages/codec/codec.hpp"
#include "messages/codec/column.hpp"

namespace signalbox::codec {

namespace {

using schema::Described;
using schema::for_each_field;

/// What msgpack's packer writes to.
struct Sink {
  Bytes bytes;
  void write(const char* data, std::size_t size) {
    bytes.insert(bytes.end(), reinterpret_cast<const std::uint8_t*>(data),
                 reinterpret_cast<const std::uint8_t*>(data) + size);
  }
  /// Room for `size` bytes at the end.
  std::uint8_t* grow(std::size_t size) {
    bytes.resize(bytes.size() + size);
    return bytes.data() + bytes.size() - size;
  }
};
using Packer = msgpack::packer<Sink>;

class Encoder {
 public:
  template <Described T>
  void fields(const T& value) {
    std::uint32_t present = 0;
    for_each_field<T>([&](const auto& f) { present += is_present(value.*f.place); });
    pack_.pack_map(present);
    for_each_field<T>([&](const auto& f) {
      if (!is_present(value.*f.place)) return;
      pack_.pack(f.number);
      this->value(value.*f.place);
    });
  }

  void envelope(const schema::Envelope& e) {
    pack_.pack_array(9);
    text(e.source.str());
    pack_.pack(e.incarnation.counter).pack(e.incarnation.random).pack(e.sequence);
    pack_.pack(e.sent.count()).pack(e.sent_wall.count());
    pack_.pack(e.kind).pack(e.version).pack(e.config_fingerprint);
  }

  Bytes take() { return std::move(sink_.bytes); }

 private:
  template <class V>
  static bool is_present(const V& value) {
    if constexpr (schema::is_optional<V>::value)
      return value.has_value();
    else
      return true;
  }

  template <class V>
  void value(const V& v) {
    if constexpr (schema::is_optional<V>::value)
      value(*v);
    else if constexpr (std::is_same_v<V, std::string>)
      text(v);
    else if constexpr (schema::is_name<V>::value)
      text(v.str());
    else if constexpr (std::is_same_v<V, Bytes>)
      binary(v);
    else if constexpr (std::is_same_v<V, Digest>)
      binary(v.bytes);
    else if constexpr (std::is_same_v<V, Incarnation>)
      pack_.pack_array(2).pack(v.counter).pack(v.random);
    else if constexpr (std::is_same_v<V, Term>)
      pack_.pack_array(2).pack(v.counter), text(v.optimizer.str());
    else if constexpr (std::is_same_v<V, SnapshotVersion>)
      pack_.pack_array(3).pack(v.term.counter), text(v.term.optimizer.str()), pack_.pack(v.sequence);
    else if constexpr (schema::is_vector<V>::value)
      items(v);
    else if constexpr (Described<V>)
      fields(v);
    else
      scalar(v);
  }

  template <class V>
  void scalar(const V& v) {
    if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, double>)
      pack_.pack(v);
    else if constexpr (std::is_same_v<V, Duration>)
      pack_.pack(v.count());
    else
      pack_.pack(to_bits(v));
  }

  template <class T>
  void items(const std::vector<T>& rows) {
    if constexpr (schema::Columnar<T>) {
      columns(rows);
    } else if constexpr (Described<T> || schema::is_name<T>::value) {
      pack_.pack_array(static_cast<std::uint32_t>(rows.size()));
      for (const T& row : rows) value(row);
    } else {
      pack_.pack_array(2).pack(static_cast<std::uint8_t>(column_type<T>()));
      column(rows, [](const T& row) { return row; });
    }
  }

  /// [count, [number, type, number, type, ...], [column, column, ...]]
  template <class T>
  void columns(const std::vector<T>& rows) {
    constexpr auto count = static_cast<std::uint32_t>(std::tuple_size_v<decltype(T::fields())>);
    pack_.pack_array(3).pack(static_cast<std::uint64_t>(rows.size()));
    pack_.pack_array(2 * count);
    for_each_field<T>([&](const auto& f) {
      using Member = typename std::decay_t<decltype(f)>::member;
      pack_.pack(f.number).pack(static_cast<std::uint8_t>(column_type<Member>()));
    });
    pack_.pack_array(count);
    for_each_field<T>([&](const auto& f) { column(rows, [&](const T& row) { return row.*f.place; }); });
  }

  template <class T, class Get>
  void column(const std::vector<T>& rows, Get get) {
    constexpr std::size_t width = width_of(column_type<decltype(get(rows.front()))>());
    pack_.pack_bin(static_cast<std::uint32_t>(rows.size() * width));
    std::uint8_t* to = sink_.grow(rows.size() * width);
    for (const T& row : rows) store<width>(to_bits(get(row)), to), to += width;
  }

  void text(std::string_view s) {
    const auto size = static_cast<std::uint32_t>(s.size());
    pack_.pack_str(size).pack_str_body(s.data(), size);
  }
  template <class B>
  void binary(const B& b) {
    const auto size = static_cast<std::uint32_t>(b.size());
    pack_.pack_bin(size).pack_bin_body(reinterpret_cast<const char*>(b.data()), size);
  }

  Sink sink_;
  Packer pack_{sink_};
};

}  // namespace

Bytes encode(const schema::Message& message) {
  Encoder encoder;
  std::visit([&](const auto& m) { encoder.fields(m); }, message);
  return encoder.take();
}

Bytes encode(const schema::Envelope& envelope) {
  Encoder encoder;
  encoder.envelope(envelope);
  return encoder.take();
}

}  // namespace signalbox::codec
