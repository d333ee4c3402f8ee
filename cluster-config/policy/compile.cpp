#include "cluster-config/policy/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cluster-config/policy/parser.hpp"
#include "cluster-config/policy/resolve.hpp"

namespace signalbox::policy {
namespace {

std::string_view line_of(std::string_view text, int number) {
  for (int line = 1; line < number; ++line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void sort_and_cap(std::vector<Diagnostic>& errors) {
  std::ranges::stable_sort(errors, {},
                           [](const Diagnostic& d) { return std::tuple(d.span.line, d.span.column); });
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.span.line == b.span.line && a.span.column == b.span.column && a.what == b.what;
  };
  errors.erase(std::unique(errors.begin(), errors.end(), same), errors.end());
  if (errors.size() > max_diagnostics) errors.resize(max_diagnostics);
  constexpr std::size_t longest = 400;  // they quote the policy, whose words may be of any length
  for (Diagnostic& error : errors)
    for (std::string* text : {&error.what, &error.hint})
      if (text->size() > longest) text->replace(longest, std::string::npos, "...");
}

/// The source line and a caret under what is meant. Tabs count as one column and are shown as spaces.
std::string excerpt(std::string_view text, const Span& span) {
  constexpr std::size_t widest = 120;
  std::string line(line_of(text, span.line).substr(0, widest));
  std::ranges::replace_if(
      line, [](char c) { return c < ' ' || c > '~'; }, ' ');
  if (line.empty()) return {};
  const auto column = static_cast<std::size_t>(span.column - 1);
  if (column > line.size()) return fmt::format("  {}\n", line);
  const std::size_t length = std::clamp<std::size_t>(static_cast<std::size_t>(span.length), 1,
                                                     std::max<std::size_t>(1, line.size() - column));
  return fmt::format("  {}\n  {}{}\n", line, std::string(column, ' '), std::string(length, '^'));
}

}  // namespace

Compilation compile(std::string_view text) {
  if (text.size() > max_policy_bytes)
    return {std::nullopt,
            {{{},
              fmt::format("a policy of {} bytes", text.size()),
              fmt::format("keep it under {} bytes", max_policy_bytes)}}};
  const Lexed lexed = lex(text);
  Compilation out;
  out.errors = lexed.errors;
  const Document document = parse(lexed, out.errors);
  CompiledPolicy policy = resolve(document, out.errors);
  if (out.errors.empty()) check_assertions(document, policy, out.errors);
  sort_and_cap(out.errors);
  if (out.errors.empty()) {
    policy.hash = digest_of(canonical_text(policy));
    out.policy = std::move(policy);
  }
  return out;
}

Result<CompiledPolicy> compile_text(std::string_view text, std::string_view file) {
  Compilation compiled = compile(text);
  if (compiled.policy) return std::move(*compiled.policy);
  const Diagnostic& first = compiled.errors.front();
  const std::size_t more = compiled.errors.size() - 1;
  return invalid(more == 0 ? first.what : fmt::format("{} (and {} more)", first.what, more),
                 fmt::format("{}:{}:{}", file, first.span.line, first.span.column), first.hint);
}

std::string render(const std::vector<Diagnostic>& errors, std::string_view text, std::string_view file) {
  std::string out;
  for (const Diagnostic& error : errors) {
    out += fmt::format("{}:{}:{}: {}\n{}", file, error.span.line, error.span.column, error.what,
                       excerpt(text, error.span));
    if (!error.hint.empty()) out += fmt::format("  {}\n", error.hint);
  }
  return out;
}

}  // namespace signalbox::policy
