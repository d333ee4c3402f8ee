#include "messages/codec/codec.hpp"
#include "messages/codec/column.hpp"
#include "messages/codec/cursor.hpp"

namespace signalbox::codec {

namespace {

using schema::Described;
using schema::for_each_field;
using Kind = Cursor::Kind;

/// A message may take this many times its length in memory: an engine of the fleet table takes about five times,
/// a row of all defaults never occurs.
constexpr std::size_t memory_factor = 32;
constexpr std::size_t memory_floor = 4096;

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class N>
void read_name(Cursor& in, N& out) {
  const auto text = as_text(in.blob(Kind::text, N::max_length, "a text"));
  if (!in.ok()) return;
  if (!text.empty() && !N::valid(text)) return in.refuse("not a valid name");
  out = N(text);
}

void read_fixed_array(Cursor& in, std::size_t size) {
  if (const auto found = in.size_of(Kind::array, "an array"); in.ok() && found != size)
    in.refuse(fmt::format("an array of {}, not of {}", found, size));
}

void read_double(Cursor& in, double& out) {
  const auto item = in.next();
  if (item.kind == Kind::real)
    out = item.real;
  else if (item.kind == Kind::unsigned_int)
    out = static_cast<double>(item.number);
  else if (item.kind == Kind::negative_int)
    out = static_cast<double>(static_cast<std::int64_t>(item.number));
  else
    in.refuse("not a number");
}

void read_duration(Cursor& in, Duration& out) {
  const auto item = in.next();
  if (item.kind != Kind::unsigned_int && item.kind != Kind::negative_int) return in.refuse("not a number");
  if (item.kind == Kind::unsigned_int && item.number > INT64_MAX)
    return in.refuse("longer than any duration");
  out = Duration(static_cast<std::int64_t>(item.number));
}

template <class V>
void read_scalar(Cursor& in, V& out) {
  if constexpr (std::is_same_v<V, bool>) {
    const auto item = in.next();
    if (item.kind != Kind::boolean) in.refuse("not a boolean");
    out = item.number != 0;
  } else if constexpr (std::is_same_v<V, double>) {
    read_double(in, out);
  } else if constexpr (std::is_same_v<V, Duration>) {
    read_duration(in, out);
  } else {
    constexpr std::size_t width = width_of(column_type<V>());
    from_bits(in.number(UINT64_MAX >> (64 - 8 * width)), out);
  }
}

template <Described T>
void read_fields(Cursor& in, T& out);

/// Fills the member of each row from a column.
template <class T, class V>
void read_column(std::span<const std::uint8_t> bytes, std::vector<T>& rows, V T::*place) {
  constexpr std::size_t width = width_of(column_type<V>());
  const std::uint8_t* from = bytes.data();
  for (T& row : rows) from_bits(load<width>(from), row.*place), from += width;
}

struct ColumnHead {
  std::uint16_t number = 0;
  std::uint8_t type = 0;
};
constexpr std::size_t max_columns = 64;

std::size_t read_descriptor(Cursor& in, std::array<ColumnHead, max_columns>& heads) {
  const std::size_t size = in.size_of(Kind::array, "a row descriptor");
  if (in.ok() && (size % 2 != 0 || size / 2 > max_columns)) in.refuse("a row descriptor of a wrong size");
  for (std::size_t i = 0; in.ok() && i < size / 2; ++i) {
    heads[i].number = static_cast<std::uint16_t>(in.number(UINT16_MAX));
    heads[i].type = static_cast<std::uint8_t>(in.number(UINT8_MAX));
    for (std::size_t j = 0; j < i; ++j)
      if (heads[j].number == heads[i].number) in.refuse("a column described twice");
  }
  return size / 2;
}

/// One column: into its field if there is one of that number, else nowhere.
template <class T>
void read_column(Cursor& in, const ColumnHead& head, std::size_t count, std::vector<T>& rows) {
  bool known = false;
  for_each_field<T>([&](const auto& f) {
    if (f.number != head.number) return;
    known = true;
    using Member = typename std::decay_t<decltype(f)>::member;
    constexpr auto type = column_type<Member>();
    if (head.type != static_cast<std::uint8_t>(type))
      return in.refuse(fmt::format("column '{}' is of type {}, not {}", f.name, head.type, name_of(type)));
    const auto bytes = in.blob(Kind::binary, count * width_of(type), "a column");
    if (in.ok() && bytes.size() != count * width_of(type))
      return in.refuse(
          fmt::format("column '{}' is of {} bytes, not of {}", f.name, bytes.size(), count * width_of(type)));
    if (!in.ok()) return;
    // The first column allocates: by now the message holds at least a byte for every row.
    if (rows.size() != count && in.charge(count * sizeof(T))) rows.resize(count);
    if (in.ok()) read_column(bytes, rows, f.place);
  });
  if (!known) in.skip();
}

template <class F, class T>
void read_rows(Cursor& in, const F& f, std::vector<T>& rows) {
  read_fixed_array(in, 3);
  const std::size_t count = in.number(UINT32_MAX);
  if (in.ok() && count > f.most_items)
    in.refuse(ErrorKind::too_large, fmt::format("{} items, at most {}", count, f.most_items));
  std::array<ColumnHead, max_columns> heads;
  const std::size_t columns = read_descriptor(in, heads);
  read_fixed_array(in, columns);
  for (std::size_t i = 0; in.ok() && i < columns; ++i) read_column(in, heads[i], count, rows);
  if (in.ok() && rows.size() != count) in.refuse("rows without a column that is known");
}

template <class F, class T>
void read_scalars(Cursor& in, const F& f, std::vector<T>& items) {
  constexpr auto type = column_type<T>();
  constexpr std::size_t width = width_of(type);
  read_fixed_array(in, 2);
  if (in.number(UINT8_MAX) != static_cast<std::uint8_t>(type) && in.ok())
    return in.refuse(fmt::format("not a column of {}", name_of(type)));
  const auto bytes = in.blob(Kind::binary, f.most_items * width, "a column");
  if (in.ok() && bytes.size() % width != 0) in.refuse("a column that ends within a value");
  if (!in.ok() || !in.charge(bytes.size())) return;
  items.resize(bytes.size() / width);
  for (std::size_t i = 0; i < items.size(); ++i) from_bits(load<width>(bytes.data() + i * width), items[i]);
}

template <class F, class V>
void read_value(Cursor& in, const F& f, V& out);

template <class F, class T>
void read_items(Cursor& in, const F& f, std::vector<T>& items) {
  const std::size_t count = in.size_of(Kind::array, "an array");
  if (in.ok() && count > f.most_items)
    in.refuse(ErrorKind::too_large, fmt::format("{} items, at most {}", count, f.most_items));
  if (!in.ok() || !in.charge(count * sizeof(T))) return;
  items.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    read_value(in, f, items[i]);
    if (!in.ok()) return in.within(fmt::format("[{}]", i));
  }
}

template <class F, class V>
void read_value(Cursor& in, const F& f, V& out) {
  if constexpr (schema::is_optional<V>::value) {
    if (in.next_is_nil())
      in.next(), out.reset();
    else
      read_value(in, f, out.emplace());
  } else if constexpr (std::is_same_v<V, std::string>) {
    const auto bytes = in.blob(Kind::text, f.most_items, "a text");
    if (in.charge(bytes.size())) out.assign(as_text(bytes));
  } else if constexpr (schema::is_name<V>::value) {
    read_name(in, out);
  } else if constexpr (std::is_same_v<V, Bytes>) {
    const auto bytes = in.blob(Kind::binary, f.most_items, "binary");
    if (in.charge(bytes.size())) out.assign(bytes.begin(), bytes.end());
  } else if constexpr (std::is_same_v<V, Digest>) {
    const auto bytes = in.blob(Kind::binary, out.bytes.size(), "binary");
    if (in.ok() && bytes.size() != out.bytes.size()) in.refuse("not a digest of 32 bytes");
    if (in.ok()) std::copy(bytes.begin(), bytes.end(), out.bytes.begin());
  } else if constexpr (std::is_same_v<V, Incarnation>) {
    read_fixed_array(in, 2);
    out.counter = in.number(UINT64_MAX), out.random = in.number(UINT64_MAX);
  } else if constexpr (std::is_same_v<V, Term>) {
    read_fixed_array(in, 2);
    out.counter = in.number(UINT64_MAX), read_name(in, out.optimizer);
  } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
    read_fixed_array(in, 3);
    out.term.counter = in.number(UINT64_MAX), read_name(in, out.term.optimizer);
    out.sequence = in.number(UINT64_MAX);
  } else if constexpr (schema::is_vector<V>::value) {
    using Item = typename V::value_type;
    if constexpr (schema::Columnar<Item>)
      read_rows(in, f, out);
    else if constexpr (Described<Item> || schema::is_name<Item>::value)
      read_items(in, f, out);
    else
      read_scalars(in, f, out);
  } else if constexpr (Described<V>) {
    read_fields(in, out);
  } else {
    read_scalar(in, out);
  }
}

template <Described T>
void read_fields(Cursor& in, T& out) {
  std::uint64_t seen = 0;
  const std::size_t pairs = in.size_of(Kind::map, "a map");
  for (std::size_t i = 0; in.ok() && i < pairs; ++i) {
    const auto number = in.number(UINT16_MAX);
    bool known = false;
    for_each_field<T>([&](const auto& f) {
      if (f.number != number) return;
      known = true;
      if (seen >> (f.number % 64) & 1u) in.refuse("a field given twice");
      seen |= std::uint64_t{1} << (f.number % 64);
      if (in.ok()) read_value(in, f, out.*f.place);
      if (!in.ok()) in.within(f.name);
    });
    if (!known) in.skip();
  }
}

template <Described T>
constexpr bool numbers_fit() {
  bool fit = true;
  for_each_field<T>([&](const auto& f) { fit = fit && f.number < 64; });
  return fit;
}

template <class T>
Result<schema::Message> decode_as(std::span<const std::uint8_t> body) {
  static_assert(numbers_fit<T>(), "field numbers are kept in 64 bits to find repeated ones");
  if (body.size() > T::info.max_bytes)
    return fail(ErrorKind::too_large, fmt::format("{} bytes, at most {}", body.size(), T::info.max_bytes),
                std::string(T::info.name));
  Cursor in(body, memory_factor * body.size() + memory_floor);
  T message;
  read_fields(in, message);
  if (in.ok() && !in.at_end()) in.refuse("bytes after its end");
  if (!in.ok()) return tl::unexpected(Error(in.error()).within(T::info.name));
  schema::Message out(std::move(message));
  if (auto status = schema::check(out); !status)
    return tl::unexpected(std::move(status.error()).within(T::info.name));
  return out;
}

using Decoder = Result<schema::Message> (*)(std::span<const std::uint8_t>);
template <std::size_t... I>
Decoder decoder_of(std::uint16_t kind, std::index_sequence<I...>) {
  Decoder out = nullptr;
  ((schema::MessageType<I>::info.kind == kind ? void(out = &decode_as<schema::MessageType<I>>) : void()),
   ...);
  return out;
}

}  // namespace

Result<schema::Message> decode(std::uint16_t kind, std::span<const std::uint8_t> body) {
  const Decoder decoder = decoder_of(kind, std::make_index_sequence<schema::message_count>());
  if (decoder == nullptr)
    return fail(ErrorKind::not_found, fmt::format("kind {} is no message of this version", kind));
  return decoder(body);
}

Result<schema::Envelope> decode_envelope(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > max_envelope_bytes)
    return fail(ErrorKind::too_large, fmt::format("{} bytes, at most {}", bytes.size(), max_envelope_bytes),
                "envelope");
  Cursor in(bytes, 0);
  schema::Envelope e;
  const std::size_t size = in.size_of(Kind::array, "an array");
  if (in.ok() && size < 9) in.refuse(fmt::format("an array of {}, at least 9 are needed", size));
  read_name(in, e.source);
  e.incarnation.counter = in.number(UINT64_MAX), e.incarnation.random = in.number(UINT64_MAX);
  e.sequence = in.number(UINT64_MAX);
  read_duration(in, e.sent), read_duration(in, e.sent_wall);
  e.kind = static_cast<std::uint16_t>(in.number(UINT16_MAX));
  e.version = static_cast<std::uint16_t>(in.number(UINT16_MAX));
  e.config_fingerprint = in.number(UINT64_MAX);
  for (std::size_t i = 9; in.ok() && i < size; ++i) in.skip();
  if (in.ok() && !in.at_end()) in.refuse("bytes after its end");
  if (in.ok() && (e.source.empty() || e.sequence == 0)) in.refuse("no source or no sequence");
  if (!in.ok()) return tl::unexpected(Error(in.error()).within("envelope"));
  return e;
}

}  // namespace signalbox::codec
