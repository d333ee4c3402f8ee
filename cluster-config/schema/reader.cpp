#include "cluster-config/schema/reader.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>

#include "cluster-config/schema/address.hpp"
#include "messages/base/duration_text.hpp"
#include "messages/base/nearest.hpp"

namespace signalbox::config {
namespace {

Place place_of_source(const toml::source_region& source) {
  return {static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

const Setting& setting_of(const FileKind& kind, std::string_view table, std::string_view key) {
  for (const Setting& setting : kind.settings)
    if (setting.table == table && setting.key == key) return setting;
  std::terminate();  // a key that is read but not declared is a defect of ours
}

/// "fleet", "engine.kind".
std::string full_name(const Setting& setting) {
  return setting.table.empty() ? std::string(setting.key) : fmt::format("{}.{}", setting.table, setting.key);
}

std::string bounds_text(const Setting& setting) {
  const auto bound = [&setting](double value) {
    return setting.type == SettingType::duration ? duration_text(from_seconds(value))
                                                 : fmt::format("{}", value);
  };
  const std::string unit =
      setting.unit.empty() || setting.type == SettingType::duration ? "" : fmt::format(" {}", setting.unit);
  return fmt::format("it may be {} to {}{}", bound(setting.low), bound(setting.high), unit);
}

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> out;
  while (!choices.empty()) {
    const std::size_t bar = std::min(choices.find('|'), choices.size());
    out.push_back(choices.substr(0, bar));
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return out;
}

}  // namespace

struct Document::Impl {
  toml::table root;
  FileKind kind;
  std::vector<Mistake>* mistakes = nullptr;
  std::uint16_t port_base = 0;
  bool is_toml = true;

  void check_keys(const toml::table& table, std::string_view name);
  void check_shape(const toml::key& key, const toml::node& node, const SettingTable& declared);
};

struct Section::Impl {
  std::shared_ptr<const Document::Impl> document;
  const toml::table* table = nullptr;
  std::string_view name;
  Place place;

  const toml::node* find(std::string_view key) const { return table ? table->get(key) : nullptr; }
};

// ---------------------------------------------------------------------------------------------------------------- document

Document::Document(std::string_view text, std::vector<Mistake>& mistakes, FileKind kind)
    : impl_(std::make_shared<Impl>()) {
  impl_->kind = kind;
  impl_->mistakes = &mistakes;
  try {
    impl_->root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    impl_->is_toml = false;
    mistakes.push_back({place_of_source(error.source()), std::string(error.description()),
                        "the file is not TOML from here on"});
    return;
  }
  impl_->check_keys(impl_->root, "");
}

/// Reports keys that nobody declares, in this table and in those below it.
void Document::Impl::check_keys(const toml::table& table, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Setting& setting : kind.settings)
    if (setting.table == name) known.push_back(setting.key);
  for (const SettingTable& declared : kind.tables) {
    const std::string_view inner = declared.name;
    if (name.empty() ? !inner.empty() && inner.find('.') == std::string_view::npos
                     : inner.starts_with(name) && inner.substr(name.size()).starts_with('.'))
      known.push_back(name.empty() ? inner : inner.substr(name.size() + 1));
  }
  for (const auto& [key, node] : table) {
    if (std::ranges::find(known, key.str()) == known.end()) {
      const std::string where = name.empty() ? "the top of the file" : fmt::format("[{}]", name);
      mistakes->push_back({place_of_source(key.source()), fmt::format("{} has no key '{}'", where, key.str()),
                           name_hint(key.str(), known)});
      continue;
    }
    const std::string full = name.empty() ? std::string(key.str()) : fmt::format("{}.{}", name, key.str());
    for (const SettingTable& declared : kind.tables)
      if (declared.name == full && !full.empty()) check_shape(key, node, declared);
  }
}

void Document::Impl::check_shape(const toml::key& key, const toml::node& node, const SettingTable& declared) {
  const auto wrong = [&] {
    mistakes->push_back({place_of_source(key.source()), fmt::format("'{}' is not a table", declared.name),
                         declared.repeated ? fmt::format("write [[{}]], once for each", declared.name)
                                           : fmt::format("write [{}]", declared.name)});
  };
  if (!declared.repeated) {
    if (!node.is_table()) return wrong();
    return check_keys(*node.as_table(), declared.name);
  }
  if (!node.is_array()) return wrong();
  for (const toml::node& row : *node.as_array()) {
    if (!row.is_table()) return wrong();
    check_keys(*row.as_table(), declared.name);
  }
}

bool Document::is_toml() const { return impl_->is_toml; }

void Document::set_port_base(std::uint16_t port_base) { impl_->port_base = port_base; }

Section Document::top() const {
  return Section(std::make_shared<Section::Impl>(Section::Impl{impl_, &impl_->root, "", {1, 1}}));
}

Section Document::table(std::string_view name) const {
  const toml::table* table = impl_->root[name].as_table();
  const Place place = table ? place_of_source(table->source()) : Place{1, 1};
  return Section(std::make_shared<Section::Impl>(Section::Impl{impl_, table, name, place}));
}

std::vector<Section> Document::tables(std::string_view name) const {
  std::vector<Section> out;
  const toml::array* rows = impl_->root[name].as_array();
  if (!rows) return out;
  for (const toml::node& row : *rows)
    if (const toml::table* table = row.as_table())
      out.push_back(Section(std::make_shared<Section::Impl>(
          Section::Impl{impl_, table, name, place_of_source(table->source())})));
  return out;
}

// ----------------------------------------------------------------------------------------------------------------- section

Place Section::place() const { return impl_->place; }

Place Section::place_of(std::string_view key) const {
  const toml::node* node = impl_->find(key);
  return node ? place_of_source(node->source()) : impl_->place;
}

bool Section::has(std::string_view key) const { return impl_->find(key) != nullptr; }

void Section::mistake(std::string_view key, std::string what, std::string hint) const {
  impl_->document->mistakes->push_back({place_of(key), std::move(what), std::move(hint)});
}

std::optional<Section> Section::inner(std::string_view key) const {
  const toml::node* node = impl_->find(key);
  const toml::table* table = node ? node->as_table() : nullptr;
  if (!table) return std::nullopt;
  for (const SettingTable& declared : impl_->document->kind.tables)
    if (declared.name == fmt::format("{}.{}", impl_->name, key))
      return Section(std::make_shared<Impl>(
          Impl{impl_->document, table, declared.name, place_of_source(table->source())}));
  return std::nullopt;
}

namespace {

/// The node of a key, or nullptr after a missing required key was reported.
const toml::node* wanted(const Section& section, const toml::node* node, const Setting& setting) {
  if (!node && setting.required)
    section.mistake(setting.key, fmt::format("'{}' is missing", full_name(setting)),
                    std::string(setting.sentence));
  return node;
}

void wrong_type(const Section& section, const Setting& setting) {
  section.mistake(setting.key, fmt::format("'{}' is not {}", full_name(setting), describe(setting.type)));
}

double within_bounds(const Section& section, const Setting& setting, double value, double fallback) {
  if (value >= setting.low && value <= setting.high) return value;
  const std::string shown =
      setting.type == SettingType::duration ? duration_text(from_seconds(value)) : fmt::format("{}", value);
  section.mistake(setting.key, fmt::format("'{}' is {}", full_name(setting), shown), bounds_text(setting));
  return fallback;
}

double fallback_number(const Setting& setting) {
  double value = setting.low;
  std::from_chars(setting.fallback.data(), setting.fallback.data() + setting.fallback.size(), value);
  return value;
}

}  // namespace

std::string Section::text(std::string_view key) const {
  const Setting& setting = setting_of(impl_->document->kind, impl_->name, key);
  const toml::node* node = wanted(*this, impl_->find(key), setting);
  if (!node) return std::string(setting.fallback);
  const auto value = node->value<std::string_view>();
  if (!value || value->empty()) return wrong_type(*this, setting), std::string(setting.fallback);
  if (setting.type == SettingType::name && !is_plain_name(*value)) {
    mistake(key, fmt::format("'{}' is not {}", value->substr(0, 80), describe(setting.type)));
    return std::string(setting.fallback);
  }
  if (setting.type == SettingType::choice) {
    const auto choices = split_choices(setting.choices);
    if (std::ranges::find(choices, *value) == choices.end()) {
      mistake(key, fmt::format("'{}' cannot be '{}'", full_name(setting), *value),
              name_hint(*value, choices));
      return std::string(setting.fallback);
    }
  }
  return std::string(*value);
}

double Section::number(std::string_view key) const {
  const Setting& setting = setting_of(impl_->document->kind, impl_->name, key);
  const toml::node* node = wanted(*this, impl_->find(key), setting);
  const double fallback = fallback_number(setting);
  if (!node) return fallback;
  const auto value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value || !std::isfinite(*value)) return wrong_type(*this, setting), fallback;
  return within_bounds(*this, setting, *value, fallback);
}

std::uint64_t Section::integer(std::string_view key) const {
  const Setting& setting = setting_of(impl_->document->kind, impl_->name, key);
  const toml::node* node = wanted(*this, impl_->find(key), setting);
  const double fallback = fallback_number(setting);
  if (!node) return static_cast<std::uint64_t>(fallback);
  const auto value = node->is_integer() ? node->value<std::int64_t>() : std::nullopt;
  if (!value) return wrong_type(*this, setting), static_cast<std::uint64_t>(fallback);
  return static_cast<std::uint64_t>(within_bounds(*this, setting, static_cast<double>(*value), fallback));
}

Duration Section::duration(std::string_view key) const {
  const Setting& setting = setting_of(impl_->document->kind, impl_->name, key);
  const toml::node* node = wanted(*this, impl_->find(key), setting);
  const Duration fallback = parse_duration(setting.fallback).value_or(Duration::zero());
  if (!node) return fallback;
  const auto value = node->value<std::string_view>();
  const auto parsed = value ? parse_duration(*value) : Result<Duration>(invalid(""));
  if (!parsed) return wrong_type(*this, setting), fallback;
  return from_seconds(within_bounds(*this, setting, to_seconds(*parsed), to_seconds(fallback)));
}

std::string Section::address(std::string_view key) const {
  const Setting& setting = setting_of(impl_->document->kind, impl_->name, key);
  const toml::node* node = wanted(*this, impl_->find(key), setting);
  if (!node) return {};
  const auto value = node->value<std::string_view>();
  if (!value) return wrong_type(*this, setting), std::string();
  const auto resolve = setting.type == SettingType::url        ? resolve_url
                       : setting.type == SettingType::endpoint ? resolve_endpoint
                                                               : resolve_address;
  auto resolved = resolve(*value, impl_->document->port_base);
  if (resolved) return std::move(*resolved);
  mistake(key, resolved.error().what, resolved.error().hint);
  return {};
}

std::vector<std::string> Section::list(std::string_view key) const {
  const Setting& setting = setting_of(impl_->document->kind, impl_->name, key);
  std::vector<std::string> out;
  const toml::node* node = wanted(*this, impl_->find(key), setting);
  if (!node) return out;
  const toml::array* rows = node->as_array();
  if (!rows || (rows->empty() && setting.required)) return wrong_type(*this, setting), out;
  for (const toml::node& row : *rows) {
    const auto value = row.value<std::string_view>();
    if (!value) return wrong_type(*this, setting), out;
    if (std::ranges::find(out, *value) != out.end())
      mistake(key, fmt::format("'{}' is listed twice", *value));
    else
      out.emplace_back(*value);
  }
  return out;
}

}  // namespace signalbox::config
