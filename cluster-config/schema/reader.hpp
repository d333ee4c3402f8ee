// Values out of a TOML document, each judged by its declaration in settings(). Mistakes are collected; a value that is wrong
// or missing reads as its default, or as nothing, so that one run tells of all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster-config/schema/settings.hpp"
#include "cluster-config/schema/topology.hpp"

namespace signalbox::config {

class Document;

/// One table of the file, or one that is not there and gives defaults.
class Section {
 public:
  Place place() const;
  /// Where a key's value stands, or the table when it is not given.
  Place place_of(std::string_view key) const;
  bool has(std::string_view key) const;

  std::string text(std::string_view key) const;  ///< text, name, choice
  std::uint64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  Duration duration(std::string_view key) const;
  /// address, url, endpoint: resolved against the port base; empty when not given or wrong.
  std::string address(std::string_view key) const;
  std::vector<std::string> list(std::string_view key) const;
  /// A name of a strong type; empty when not given or wrong.
  template <class NameType>
  NameType name(std::string_view key) const {
    return NameType(text(key));
  }
  template <class NameType>
  std::vector<NameType> names(std::string_view key) const;

  /// A table in this one, if it is given.
  std::optional<Section> inner(std::string_view key) const;

  void mistake(std::string_view key, std::string what, std::string hint = {}) const;

 private:
  friend class Document;
  struct Impl;
  explicit Section(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// A whole file.
class Document {
 public:
  Document(std::string_view text, std::vector<Mistake>& mistakes, FileKind kind = configuration_file());

  /// False when the text is not TOML; it reads as an empty document then.
  bool is_toml() const;
  /// Addresses are resolved from this port; set it before reading any.
  void set_port_base(std::uint16_t port_base);
  Section top() const;
  /// A [table]; defaults if it is not there.
  Section table(std::string_view name) const;
  /// Every [[table]].
  std::vector<Section> tables(std::string_view name) const;

 private:
  friend class Section;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

template <class NameType>
std::vector<NameType> Section::names(std::string_view key) const {
  std::vector<NameType> out;
  for (const std::string& name : list(key)) {
    if (auto parsed = NameType::parse(name))
      out.push_back(std::move(*parsed));
    else
      mistake(key, parsed.error().what, parsed.error().hint);
  }
  return out;
}

}  // namespace signalbox::config
