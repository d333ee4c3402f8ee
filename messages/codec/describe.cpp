#include <fmt/format.h>

#include "messages/codec/codec.hpp"
#include "messages/codec/column.hpp"

namespace signalbox::codec {

namespace {

using schema::Described;
using schema::for_each_field;

constexpr std::string_view preface = R"(# Messages

Generated from the catalog (`messages/schema`). Do not edit: run the tests of `messages/codec` with
`SIGNALBOX_REWRITE=1`.

Any program with ZeroMQ and MessagePack can join the bus. It connects a PUB or XPUB socket to the `publish` endpoint
of every forwarder and a SUB socket to the `subscribe` endpoint of every forwarder, with CURVE keys that
`signalbox keys init` made for it.

## Frames

| frame | holds |
| --- | --- |
| topic | text that ends in `/` |
| envelope | an array |
| body | a map |
| proof | empty where `security = "none"`; else scheme (1 byte: 1 MAC, 2 signature), generation of the keys (1 byte), then the MAC (32 bytes) or signature (64 bytes) |
| hop | only on values out of a cache: their age there in nanoseconds, 8 bytes, little-endian |

The proof is over `signalbox.1`, then topic, envelope and body, each behind its length (8 bytes, little-endian).
A MAC is BLAKE2b-256 keyed with the fleet's MAC key; a signature is Ed25519 (detached) by the author.

A subscription to `<prefix>` gives what is said from then on. A subscription to `@<nonce>/<prefix>` beside it, with a
nonce that nobody else uses (1 to 32 letters and digits), gives the latest value of each topic at once, on topics that
begin with `@<nonce>/`; the proof is over the topic without that.

Two forwarders give everything twice: (source, incarnation, topic, sequence) names a message. Messages of an
incarnation with a lower counter than one already heard from that source are void.

## Envelope

An array of, in this order:

| | type | |
| --- | --- | --- |
| source | text | id of the process that says it |
| incarnation counter, incarnation random | unsigned, unsigned | its life: raised at each start, and a random part |
| sequence | unsigned | from 1, per topic in that life |
| sent | integer | its monotonic clock, ns |
| sent_wall | integer | ns since 1970; for display only |
| kind | unsigned | which message |
| version | unsigned | of the message's declaration |
| config_fingerprint | unsigned | of the sender's configuration |

A later version may append elements.

## Values

The body is a map from field number to value. A reader skips numbers that it does not know and keeps the default of
those that are missing. Numbers are never reused.

| type | in MessagePack |
| --- | --- |
| boolean | boolean |
| unsigned | unsigned integer |
| number | float 64; any number is read |
| duration | integer, nanoseconds (bounds are in seconds) |
| text, name | str; names of 1 to 64 of `A-Za-z0-9._-`, wide names of 1 to 128 printable characters without space, quotes or backslash; empty: none |
| bytes | bin |
| digest | bin of 32 bytes, BLAKE2b-256 |
| enum | unsigned integer |
| row | unsigned integer, a position in a table; 4294967295: none |
| incarnation | array: counter, random |
| term | array: counter, optimizer |
| version | array: term's counter, term's optimizer, sequence |
| optional ... | left out when absent |
| array of ... | array |
| column of ... | array: type, bin of values one after the other |
| rows in columns | array: number of rows, descriptor, columns |

Rows in columns: the descriptor is an array of (field number, type) pairs, flat; columns is an array of as many bins,
each with one value a row, little-endian. Types: 1 u8, 2 u16, 3 u32, 4 u64, 5 i64, 6 f64. Columns that are not known are
skipped, missing ones keep their default.

In JSON (`signalbox tap --json`) fields have their names, enums their names, durations are in seconds under `<name>_s`,
digests and bytes in hex.

## Catalog

)";

template <class V>
std::string type_name() {
  if constexpr (schema::is_optional<V>::value) {
    return "optional " + type_name<typename V::value_type>();
  } else if constexpr (std::is_same_v<V, bool>) {
    return "boolean";
  } else if constexpr (std::is_same_v<V, double>) {
    return "number";
  } else if constexpr (std::is_same_v<V, Duration>) {
    return "duration";
  } else if constexpr (std::is_same_v<V, std::string>) {
    return "text";
  } else if constexpr (schema::is_name<V>::value) {
    return V::max_length > 64 ? "wide name" : "name";
  } else if constexpr (std::is_same_v<V, Bytes>) {
    return "bytes";
  } else if constexpr (std::is_same_v<V, Digest>) {
    return "digest";
  } else if constexpr (DescribedEnum<V>) {
    return "enum";
  } else if constexpr (schema::is_index<V>::value) {
    return "row";
  } else if constexpr (std::is_same_v<V, Incarnation>) {
    return "incarnation";
  } else if constexpr (std::is_same_v<V, Term>) {
    return "term";
  } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
    return "version";
  } else if constexpr (schema::is_vector<V>::value) {
    using Item = typename V::value_type;
    if constexpr (schema::Columnar<Item>)
      return "rows in columns";
    else if constexpr (Described<Item> || schema::is_name<Item>::value)
      return "array of " + type_name<Item>();
    else
      return fmt::format("column of {}", name_of(column_type<Item>()));
  } else if constexpr (Described<V>) {
    return "map";
  } else {
    return "unsigned";
  }
}

template <class F>
std::string bounds(const F& f) {
  using Member = typename F::member;
  if (f.most_items != 0)
    return fmt::format("at most {}{}", f.most_items,
                       std::is_same_v<Member, std::string> || std::is_same_v<Member, Bytes> ? " bytes" : "");
  if (f.least == -schema::unbounded && f.most == schema::unbounded) return {};
  return fmt::format("{} to {}", f.least, f.most);
}

template <class V>
struct Inner {
  using type = V;
};
template <class V>
struct Inner<std::optional<V>> : Inner<V> {};

template <DescribedEnum E>
std::string enum_rows(std::string_view field_name) {
  std::string out = fmt::format("\n`{}`:\n\n", field_name);
  for (std::size_t i = 0; i < enum_size<E>; ++i)
    out += fmt::format("- {} `{}`: {}\n", i, EnumTable<E>::rows[i].name, EnumTable<E>::rows[i].sentence);
  return out;
}

/// How a field stands in a column, if its struct is sent in columns.
template <class T, class V>
std::string column_suffix() {
  if constexpr (schema::Columnar<T>)
    return fmt::format(" ({})", name_of(column_type<V>()));
  else
    return {};
}

template <Described T>
std::string field_table() {
  std::string out = "| | field | type | unit | bounds | |\n| --- | --- | --- | --- | --- | --- |\n";
  for_each_field<T>([&](const auto& f) {
    using Member = typename std::decay_t<decltype(f)>::member;
    out += fmt::format("| {} | {} | {}{} | {} | {} | {} |\n", f.number, f.name, type_name<Member>(),
                       column_suffix<T, Member>(), f.unit_name, bounds(f), f.sentence);
  });
  std::string inner;
  for_each_field<T>([&](const auto& f) {
    using Member = typename Inner<typename std::decay_t<decltype(f)>::member>::type;
    if constexpr (DescribedEnum<Member>) inner += enum_rows<Member>(f.name);
    if constexpr (schema::is_vector<Member>::value)
      if constexpr (Described<typename Member::value_type>)
        inner += fmt::format("\nEach of `{}`:\n\n{}", f.name, field_table<typename Member::value_type>());
  });
  return out + inner;
}

std::string authors(const schema::MessageInfo& info) {
  if (info.authors.bits == schema::every_role.bits) return "every process";
  std::string out;
  for (std::size_t i = 0; i < enum_size<Role>; ++i)
    if (info.authors.has(static_cast<Role>(i)))
      out += fmt::format("{}{}", out.empty() ? "" : ", ", EnumTable<Role>::rows[i].name);
  return out;
}

template <class T>
std::string message_section() {
  const schema::MessageInfo& info = T::info;
  const double keep_s = to_seconds(info.keep);
  return fmt::format(
      "\n## {}\n\n{}\n\nkind {}, version {}; topic `{}`; said by {}; {}; {}; at most {} bytes.\n\n{}",
      info.name, info.sentence, info.kind, info.version, info.topic, authors(info),
      info.protection == schema::Protection::signature ? "signed by its author" : "under a MAC",
      keep_s > 0 ? fmt::format("latest value kept {:g} s", keep_s) : "not kept", info.max_bytes,
      field_table<T>());
}

template <std::size_t... I>
std::string sections(std::index_sequence<I...>) {
  std::string out;
  ((out += message_section<schema::MessageType<I>>()), ...);
  return out;
}

}  // namespace

std::string describe_catalog() {
  std::string out(preface);
  out += "| kind | message | topic | |\n| --- | --- | --- | --- |\n";
  for (const auto& info : schema::catalog())
    out += fmt::format("| {} | [{}](#{}) | `{}` | {} |\n", info.kind, info.name, info.name, info.topic,
                       info.sentence);
  return out + sections(std::make_index_sequence<schema::message_count>());
}

}  // namespace signalbox::codec
