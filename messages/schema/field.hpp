// How a message declares its fields: once, and every encoding, check and page of documentation is derived
// from it.
//
//   struct Beat {
//     static constexpr MessageInfo info{...};
//     bool ready = false;
//     static constexpr auto fields() { return std::tuple{field(1, "ready", &Beat::ready, "it serves")}; }
//   };
//
// A field's number is never reused; an unknown number is skipped on receipt, a missing one keeps its default.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "messages/base/described.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/ids.hpp"
#include "messages/base/time.hpp"

namespace signalbox::schema {

/// Bytes that the schema does not look into; bin on the wire.
using Bytes = std::vector<std::uint8_t>;

/// One field of a struct: its number, name, place, unit, sentence and bounds.
template <class Owner, class Member>
struct Field {
  using owner = Owner;
  using member = Member;
  std::uint16_t number;
  std::string_view name;
  Member Owner::*place;
  std::string_view sentence;
  std::string_view unit_name{};
  double least = -std::numeric_limits<double>::max();
  double most = std::numeric_limits<double>::max();
  std::uint32_t most_items = 0;  ///< 0: the codec's default for the type

  constexpr Field unit(std::string_view name_of_unit) const {
    Field out = *this;
    out.unit_name = name_of_unit;
    return out;
  }
  /// Bounds of a number (for durations: in seconds), inclusive.
  constexpr Field within(double lo, double hi) const {
    Field out = *this;
    out.least = lo, out.most = hi;
    return out;
  }
  /// The most bytes of a string, or elements of a vector.
  constexpr Field at_most(std::uint32_t n) const {
    Field out = *this;
    out.most_items = n;
    return out;
  }
};

template <class Owner, class Member>
constexpr Field<Owner, Member> field(std::uint16_t number, std::string_view name, Member Owner::*place,
                                     std::string_view sentence) {
  return {number, name, place, sentence};
}

inline constexpr double unbounded = std::numeric_limits<double>::max();

/// A struct that declares its fields.
template <class T>
concept Described = requires {
  T::fields();
};

/// A described struct of fixed-size scalars, sent in bulk as one little-endian column per field.
template <class T>
concept Columnar = Described<T> && requires {
  requires T::columnar;
};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_name : std::false_type {};
template <class Tag>
struct is_name<Name<Tag>> : std::true_type {};
template <class T>
struct is_index : std::false_type {};
template <class Tag>
struct is_index<Index<Tag>> : std::true_type {};

/// Calls `visit(field)` for every field of T, in the order of declaration.
template <Described T, class F>
constexpr void for_each_field(F&& visit) {
  std::apply([&](const auto&... f) { (visit(f), ...); }, T::fields());
}

}  // namespace signalbox::schema
