// Enums that people read: every value has a name and a sentence, in one table whose size is checked.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace signalbox {

struct EnumRow {
  std::string_view name;      ///< stable: it appears in JSON, logs and metrics
  std::string_view sentence;  ///< for the operator
};

/// Specialised for each described enum with `static constexpr std::array rows`, one row a value from 0 up.
template <class E>
struct EnumTable;

template <class E>
concept DescribedEnum = std::is_enum_v<E> && requires {
  EnumTable<E>::rows.size();
};

template <DescribedEnum E>
inline constexpr std::size_t enum_size = EnumTable<E>::rows.size();

/// The name of a value; "unknown" for one outside the table.
template <DescribedEnum E>
constexpr std::string_view name_of(E value) {
  const auto at = static_cast<std::size_t>(value);
  return at < enum_size<E> ? EnumTable<E>::rows[at].name : std::string_view("unknown");
}
template <DescribedEnum E>
constexpr std::string_view sentence_of(E value) {
  const auto at = static_cast<std::size_t>(value);
  return at < enum_size<E> ? EnumTable<E>::rows[at].sentence : std::string_view("a value of a later version");
}
/// The value of that name, or nothing.
template <DescribedEnum E>
constexpr std::optional<E> value_of(std::string_view name) {
  for (std::size_t i = 0; i < enum_size<E>; ++i)
    if (EnumTable<E>::rows[i].name == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace signalbox
