// Scalars of a fixed width, as they stand in a column of rows: little-endian, one after the other.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "messages/schema/field.hpp"

namespace signalbox::codec {

/// Codes on the wire: append, never renumber.
enum class ColumnType : std::uint8_t { u8 = 1, u16 = 2, u32 = 3, u64 = 4, i64 = 5, f64 = 6 };

/// Bytes of one value; 0 for a code of a later version.
constexpr std::size_t width_of(ColumnType type) {
  switch (type) {
    case ColumnType::u8: return 1;
    case ColumnType::u16: return 2;
    case ColumnType::u32: return 4;
    case ColumnType::u64:
    case ColumnType::i64:
    case ColumnType::f64: return 8;
  }
  return 0;
}

constexpr std::string_view name_of(ColumnType type) {
  switch (type) {
    case ColumnType::u8: return "u8";
    case ColumnType::u16: return "u16";
    case ColumnType::u32: return "u32";
    case ColumnType::u64: return "u64";
    case ColumnType::i64: return "i64";
    case ColumnType::f64: return "f64";
  }
  return "unknown";
}

/// Indices travel as u32 with 0xffffffff for none, durations as i64 nanoseconds, enums and booleans as u8.
template <class V>
constexpr ColumnType column_type() {
  if constexpr (std::is_same_v<V, bool> || std::is_enum_v<V>) {
    static_assert(sizeof(V) == 1);
    return ColumnType::u8;
  } else if constexpr (schema::is_index<V>::value || std::is_same_v<V, std::uint32_t>) {
    return ColumnType::u32;
  } else if constexpr (std::is_same_v<V, std::uint16_t>) {
    return ColumnType::u16;
  } else if constexpr (std::is_same_v<V, std::uint64_t>) {
    return ColumnType::u64;
  } else if constexpr (std::is_same_v<V, Duration>) {
    return ColumnType::i64;
  } else {
    static_assert(std::is_same_v<V, double>, "not a scalar that columns can hold");
    return ColumnType::f64;
  }
}

template <class V>
constexpr std::uint64_t to_bits(const V& value) {
  if constexpr (std::is_same_v<V, double>)
    return std::bit_cast<std::uint64_t>(value);
  else if constexpr (std::is_same_v<V, Duration>)
    return static_cast<std::uint64_t>(value.count());
  else if constexpr (schema::is_index<V>::value)
    return value.value;
  else
    return static_cast<std::uint64_t>(value);
}

template <class V>
constexpr void from_bits(std::uint64_t bits, V& out) {
  if constexpr (std::is_same_v<V, double>)
    out = std::bit_cast<double>(bits);
  else if constexpr (std::is_same_v<V, Duration>)
    out = Duration(static_cast<std::int64_t>(bits));
  else if constexpr (schema::is_index<V>::value)
    out.value = static_cast<std::uint32_t>(bits);
  else if constexpr (std::is_same_v<V, bool>)
    out = bits != 0;
  else
    out = static_cast<V>(bits);
}

static_assert(std::endian::native == std::endian::little, "columns are copied as they lie in memory");

template <std::size_t width>
std::uint64_t load(const std::uint8_t* from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, width);
  return bits;
}
template <std::size_t width>
void store(std::uint64_t bits, std::uint8_t* to) {
  std::memcpy(to, &bits, width);
}

}  // namespace signalbox::codec
