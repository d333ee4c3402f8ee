// Checks derived from the declarations: finite, within bounds, known enum values, few enough items.
#pragma once

#include <fmt/format.h>

#include "messages/schema/field.hpp"

namespace signalbox::schema {

template <Described T>
Status check_fields(const T& value);

template <class F, class V>
Status check_value(const F& f, const V& value) {
  if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, Digest> || std::is_same_v<V, Incarnation> ||
                std::is_same_v<V, Term> || std::is_same_v<V, SnapshotVersion> || is_name<V>::value ||
                is_index<V>::value) {
    return {};
  } else if constexpr (is_optional<V>::value) {
    return value ? check_value(f, *value) : Status{};
  } else if constexpr (std::is_same_v<V, Duration>) {
    return check_value(f, to_seconds(value));
  } else if constexpr (std::is_floating_point_v<V>) {
    if (!std::isfinite(value)) return invalid("not a finite number", std::string(f.name));
    if (value < f.least || value > f.most)
      return fail(ErrorKind::invalid, fmt::format("{} is outside {}..{}", value, f.least, f.most),
                  std::string(f.name));
    return {};
  } else if constexpr (DescribedEnum<V>) {
    if (static_cast<std::size_t>(value) >= enum_size<V>)
      return invalid(fmt::format("{} is no known value", static_cast<unsigned>(value)), std::string(f.name));
    return {};
  } else if constexpr (std::is_integral_v<V>) {
    const auto number = static_cast<double>(value);
    if (number < f.least || number > f.most)
      return invalid(fmt::format("{} is outside {}..{}", value, f.least, f.most), std::string(f.name));
    return {};
  } else if constexpr (std::is_same_v<V, std::string>) {
    if (f.most_items != 0 && value.size() > f.most_items)
      return fail(ErrorKind::too_large, fmt::format("{} bytes, at most {}", value.size(), f.most_items),
                  std::string(f.name));
    return {};
  } else if constexpr (is_vector<V>::value) {
    if (f.most_items != 0 && value.size() > f.most_items)
      return fail(ErrorKind::too_large, fmt::format("{} items, at most {}", value.size(), f.most_items),
                  std::string(f.name));
    for (std::size_t i = 0; i < value.size(); ++i)
      if (auto status = check_value(f, value[i]); !status)
        return tl::unexpected(std::move(status.error()).within(fmt::format("{}[{}]", f.name, i)));
    return {};
  } else {
    static_assert(Described<V>, "a field of a type that the schema does not know");
    return check_fields(value);
  }
}

/// The first field of `value` that breaks its declaration, then the struct's own rule if it declares `Status
/// check() const`.
template <Described T>
Status check_fields(const T& value) {
  Status status;
  for_each_field<T>([&](const auto& f) {
    if (status) status = check_value(f, value.*f.place);
  });
  if constexpr (requires {
                  { value.check() } -> std::same_as<Status>;
                })
    if (status) status = value.check();
  return status;
}

}  // namespace signalbox::schema
