#include "tools/fleet_view/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "messages/base/nearest.hpp"

namespace signalbox::fleet_view {

enum class Comparison : std::uint8_t { present, equal, unequal, less, at_most, more, at_least, contains };

struct Expression::Node {
  enum class Kind : std::uint8_t { any_of, all_of, none_of, compare } kind = Kind::compare;
  std::vector<std::shared_ptr<const Node>> parts;
  Path path;
  Comparison comparison = Comparison::present;
  std::string text;
  std::optional<double> number;  ///< of `text`, if it is one
};

namespace {

using Node = Expression::Node;
using NodePtr = std::shared_ptr<const Node>;

constexpr std::array<std::string_view, 6> envelope_fields{"topic",    "message", "source",
                                                          "sequence", "age",     "age_s"};

bool is_envelope_field(const Path& path) {
  return path.size() == 1 &&
         std::find(envelope_fields.begin(), envelope_fields.end(), path[0]) != envelope_fields.end();
}

constexpr std::size_t most_depth = 32;

struct Operator {
  std::string_view text;
  Comparison comparison;
};
constexpr std::array operators{
    Operator{"==", Comparison::equal},   Operator{"!=", Comparison::unequal},
    Operator{"<=", Comparison::at_most}, Operator{">=", Comparison::at_least},
    Operator{"<", Comparison::less},     Operator{">", Comparison::more},
    Operator{"~", Comparison::contains}, Operator{"=", Comparison::equal},
};

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '+' || c == '/' || c == '@' || c == ':' || c == '#';
}

/// A number, perhaps with a unit of time, in seconds then.
std::optional<double> number_of(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || !std::isfinite(out)) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::array<std::pair<std::string_view, double>, 6> units{
      {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"h", 3600}}};
  for (const auto& [name, factor] : units)
    if (unit == name) return out * factor;
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, const std::vector<const schema::MessageInfo*>& types)
      : text_(text), types_(types) {}

  Result<NodePtr> run() {
    auto out = either(0);
    if (!out) return out;
    skip_space();
    if (at_ < text_.size()) return wrong(fmt::format("'{}' is too much", text_.substr(at_)));
    return out;
  }

 private:
  tl::unexpected<Error> wrong(std::string what) const {
    return invalid(std::move(what), fmt::format("--where, column {}", at_ + 1),
                   "for example: waiting > 4 and scrape == ok");
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (is_word_char(token.back()) && end < text_.size() && is_word_char(text_[end])) return false;
    at_ = end;
    return true;
  }

  Result<NodePtr> either(std::size_t depth) {
    return joined(Node::Kind::any_of, depth, {"or", "||"}, [this](std::size_t d) { return both(d); });
  }
  Result<NodePtr> both(std::size_t depth) {
    return joined(Node::Kind::all_of, depth, {"and", "&&"}, [this](std::size_t d) { return one(d); });
  }

  template <class F>
  Result<NodePtr> joined(Node::Kind kind, std::size_t depth, std::array<std::string_view, 2> words,
                         F&& part) {
    if (depth > most_depth) return wrong("nested too deeply");
    Node node;
    node.kind = kind;
    do {
      auto next = part(depth + 1);
      if (!next) return next;
      node.parts.push_back(std::move(*next));
    } while (take(words[0]) || take(words[1]));
    return node.parts.size() == 1 ? node.parts.front() : std::make_shared<const Node>(std::move(node));
  }

  Result<NodePtr> one(std::size_t depth) {
    if (depth > most_depth) return wrong("nested too deeply");
    if (take("not") || take("!")) {
      auto inner = one(depth + 1);
      if (!inner) return inner;
      Node node;
      node.kind = Node::Kind::none_of;
      node.parts.push_back(std::move(*inner));
      return std::make_shared<const Node>(std::move(node));
    }
    if (take("(")) {
      auto inner = either(depth + 1);
      if (inner && !take(")")) return wrong("a ')' is missing");
      return inner;
    }
    return comparison();
  }

  Result<NodePtr> comparison() {
    Node node;
    const auto field = word();
    if (!field) return wrong("a field is expected");
    node.path = parse_path(field->starts_with("body.") ? std::string_view(*field).substr(5) : *field);
    if (const Status known = check_field(node.path, *field); !known) return tl::unexpected(known.error());
    skip_space();
    for (const Operator& op : operators) {
      if (!take(op.text)) continue;
      node.comparison = op.comparison;
      const auto value = text_value();
      if (!value) return wrong("a value is expected");
      node.text = *value;
      node.number = number_of(node.text);
      const bool ordered = op.comparison != Comparison::equal && op.comparison != Comparison::unequal &&
                           op.comparison != Comparison::contains;
      if (ordered && !node.number) return wrong(fmt::format("'{}' is no number to compare with", node.text));
      break;
    }
    return std::make_shared<const Node>(std::move(node));
  }

  std::optional<std::string> word() {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    if (at_ == begin) return std::nullopt;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::optional<std::string> text_value() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return word();
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  Status check_field(const Path& path, const std::string& said) const {
    if (is_envelope_field(path)) return {};
    std::vector<std::string> known(envelope_fields.begin(), envelope_fields.end());
    for (const schema::MessageInfo* type : types_) {
      if (has_path(*type, path)) return {};
      for (std::string& name : field_names(*type)) known.push_back(std::move(name));
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    const std::string_view near = nearest(said, names);
    return fail(ErrorKind::not_found, fmt::format("no message that is shown has a field '{}'", said),
                "--where",
                near.empty() ? "docs/messages.md lists them" : fmt::format("is '{}' meant?", near));
  }

  std::string_view text_;
  const std::vector<const schema::MessageInfo*>& types_;
  std::size_t at_ = 0;
};

std::vector<FieldValue> envelope_value(const schema::Delivery& delivery, const std::string& field) {
  if (field == "topic") return {delivery.topic};
  if (field == "message") return {std::string(schema::info_of(delivery.message).name)};
  if (field == "source") return {delivery.envelope.source.str()};
  if (field == "sequence") return {static_cast<double>(delivery.envelope.sequence)};
  return {to_seconds(delivery.age)};
}

bool holds_for(const Node& node, const FieldValue& value) {
  const auto compare = [&](double number) {
    if (!node.number) return node.comparison == Comparison::unequal;
    switch (node.comparison) {
      case Comparison::equal: return number == *node.number;
      case Comparison::unequal: return number != *node.number;
      case Comparison::less: return number < *node.number;
      case Comparison::at_most: return number <= *node.number;
      case Comparison::more: return number > *node.number;
      case Comparison::at_least: return number >= *node.number;
      case Comparison::present:
      case Comparison::contains: break;
    }
    return false;
  };
  const auto compare_text = [&](const std::string& text) {
    switch (node.comparison) {
      case Comparison::equal: return text == node.text;
      case Comparison::unequal: return text != node.text;
      case Comparison::contains: return text.find(node.text) != std::string::npos;
      case Comparison::present:
      case Comparison::less:
      case Comparison::at_most:
      case Comparison::more:
      case Comparison::at_least: break;
    }
    return false;
  };
  const bool present = node.comparison == Comparison::present;
  if (const auto* flag = std::get_if<bool>(&value))
    return present ? *flag : compare_text(*flag ? "true" : "false");
  if (const auto* number = std::get_if<double>(&value)) return present ? *number != 0 : compare(*number);
  if (const auto* text = std::get_if<std::string>(&value))
    return present ? !text->empty() : compare_text(*text);
  return false;
}

bool compare_holds(const Node& node, const schema::Delivery& delivery, const RowNames& names) {
  std::vector<FieldValue> values = values_at(delivery.message, node.path, names);
  if (values.empty() && is_envelope_field(node.path)) values = envelope_value(delivery, node.path[0]);
  const auto test = [&](const FieldValue& value) { return holds_for(node, value); };
  // An index has a number and a name: it differs only if both do.
  if (node.comparison == Comparison::unequal)
    return !values.empty() && std::all_of(values.begin(), values.end(), test);
  return std::any_of(values.begin(), values.end(), test);
}

bool node_holds(const Node& node, const schema::Delivery& delivery, const RowNames& names) {
  const auto test = [&](const NodePtr& part) { return node_holds(*part, delivery, names); };
  switch (node.kind) {
    case Node::Kind::any_of: return std::any_of(node.parts.begin(), node.parts.end(), test);
    case Node::Kind::all_of: return std::all_of(node.parts.begin(), node.parts.end(), test);
    case Node::Kind::none_of: return std::none_of(node.parts.begin(), node.parts.end(), test);
    case Node::Kind::compare: return compare_holds(node, delivery, names);
  }
  return false;
}

}  // namespace

Result<Expression> Expression::parse(std::string_view text,
                                     const std::vector<const schema::MessageInfo*>& types) {
  auto root = Parser(text, types).run();
  if (!root) return tl::unexpected(std::move(root.error()));
  Expression out;
  out.root_ = std::move(*root);
  return out;
}

bool Expression::holds(const schema::Delivery& delivery, const RowNames& names) const {
  return node_holds(*root_, delivery, names);
}

}  // namespace signalbox::fleet_view
