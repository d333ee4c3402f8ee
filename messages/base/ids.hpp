// Strong names and indices: an engine's name cannot be passed where a cluster's is meant.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "messages/base/result.hpp"

namespace signalbox {

/// True for 1 to 64 characters of [A-Za-z0-9._-] with other than dots among them: safe in topics, file names and metric
/// labels.
bool is_plain_name(std::string_view text);
/// True for 1 to 128 printable ASCII characters without space, quotes or backslash: names that clients choose
/// ("org/model:7b").
bool is_wide_name(std::string_view text);

/// A validated name; `Tag` says of what, and by `Tag::wide` whether it may hold more than a plain name. Empty
/// means "none".
template <class Tag>
class Name {
 public:
  static constexpr std::size_t max_length = Tag::wide ? 128 : 64;

  Name() = default;
  /// For literals and trusted text; an invalid name becomes empty. Untrusted text goes through parse().
  explicit Name(std::string_view text) : text_(valid(text) ? std::string(text) : std::string()) {}

  static Result<Name> parse(std::string_view text) {
    if (!valid(text))
      return invalid(fmt::format("'{}' is not a name of a {}", text.substr(0, 80), Tag::noun), {},
                     Tag::wide ? "use 1 to 128 printable characters without spaces or quotes"
                               : "use 1 to 64 characters of A-Z a-z 0-9 . _ -, not only dots");
    return Name(text);
  }
  static bool valid(std::string_view text) { return Tag::wide ? is_wide_name(text) : is_plain_name(text); }

  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend auto operator<=>(const Name&, const Name&) = default;
  friend bool operator==(const Name&, const Name&) = default;

 private:
  std::string text_;
};

struct EngineTag {
  static constexpr bool wide = false;
  static constexpr std::string_view noun = "engine";
};
struct ClusterTag {
  static constexpr bool wide = false;
  static constexpr std::string_view noun = "cluster";
};
struct ProcessTag {
  static constexpr bool wide = false;
  static constexpr std::string_view noun = "process";
};
struct DomainTag {
  static constexpr bool wide = false;
  static constexpr std::string_view noun = "failure domain";
};
struct ClassTag {
  static constexpr bool wide = true;
  static constexpr std::string_view noun = "class";
};
struct ModelTag {
  static constexpr bool wide = true;
  static constexpr std::string_view noun = "model";
};
struct TenantTag {
  static constexpr bool wide = true;
  static constexpr std::string_view noun = "tenant";
};

using EngineName = Name<EngineTag>;
using ClusterName = Name<ClusterTag>;
using ProcessName = Name<ProcessTag>;  ///< a process of the fleet: a router, monitor, optimizer, ...
using DomainName = Name<DomainTag>;    ///< a rack, region or zone
using ClassName = Name<ClassTag>;
using ModelName = Name<ModelTag>;
using TenantName = Name<TenantTag>;

/// A position in a table; `Tag` says which. Ordered; convertible to std::size_t only on request.
template <class Tag>
struct Index {
  std::uint32_t value = UINT32_MAX;  ///< UINT32_MAX: none

  constexpr Index() = default;
  constexpr explicit Index(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  constexpr bool valid() const { return value != UINT32_MAX; }
  constexpr std::size_t at() const { return value; }
  friend constexpr auto operator<=>(Index, Index) = default;
};

using EngineIndex = Index<EngineTag>;    ///< row of the fleet table's engines
using ClusterIndex = Index<ClusterTag>;  ///< row of the fleet table's clusters
using ClassIndex = Index<ClassTag>;      ///< row of the compiled policy's classes
using ModelIndex = Index<ModelTag>;      ///< row of the compiled policy's models

/// One life of an engine or process: a persisted boot counter, and a random part that tells apart lives whose
/// counter was lost.
struct Incarnation {
  std::uint64_t counter = 0;
  std::uint64_t random = 0;
  /// Lives are ordered by their counter alone; an equal counter with another random part is another,
  /// unordered, life.
  bool older_than(const Incarnation& other) const { return counter < other.counter; }
  friend bool operator==(const Incarnation&, const Incarnation&) = default;
};

/// A reign of one optimizer, compared by counter, then by id.
struct Term {
  std::uint64_t counter = 0;
  ProcessName optimizer;
  friend auto operator<=>(const Term&, const Term&) = default;
  friend bool operator==(const Term&, const Term&) = default;
};

/// The version of a snapshot: routers take the highest and refuse older ones.
struct SnapshotVersion {
  Term term;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const SnapshotVersion&, const SnapshotVersion&) = default;
  friend bool operator==(const SnapshotVersion&, const SnapshotVersion&) = default;
};

}  // namespace signalbox

template <class Tag>
struct fmt::formatter<signalbox::Name<Tag>> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const signalbox::Name<Tag>& name, Context& context) const {
    return fmt::formatter<std::string_view>::format(name.str(), context);
  }
};
template <>
struct fmt::formatter<signalbox::SnapshotVersion> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const signalbox::SnapshotVersion& v, Context& context) const {
    return fmt::format_to(context.out(), "{}@{}.{}", v.term.counter, v.term.optimizer.str(), v.sequence);
  }
};
template <class Tag>
struct std::hash<signalbox::Name<Tag>> {
  std::size_t operator()(const signalbox::Name<Tag>& name) const noexcept {
    return std::hash<std::string>{}(name.str());
  }
};
