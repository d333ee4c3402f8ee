// From text to a CompiledPolicy, and back to text. Pure: who reads the file is a shell's business.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster-config/policy/compiled.hpp"
#include "messages/base/result.hpp"

namespace signalbox::policy {

/// A place in the source. Lines and columns count from 1, columns in bytes.
struct Span {
  int line = 1;
  int column = 1;
  int length = 1;
};

/// One error: where, what is wrong, what to do.
struct Diagnostic {
  Span span;
  std::string what;
  std::string hint;  ///< may be empty
};

/// Either a policy or at least one diagnostic, in the order of the source.
struct Compilation {
  std::optional<CompiledPolicy> policy;
  std::vector<Diagnostic> errors;
};

inline constexpr std::size_t max_policy_bytes = 1 << 20;
inline constexpr std::size_t max_diagnostics = 20;

/// Parses, checks and resolves; reports as many errors as it can tell apart.
Compilation compile(std::string_view text);

/// The same for those who show one error: its `where` is "file:line:column"; further errors are counted in
/// `what`.
Result<CompiledPolicy> compile_text(std::string_view text, std::string_view file);

/// "file:line:column: what", the source line with a caret, and the hint, per error.
std::string render(const std::vector<Diagnostic>& errors, std::string_view text, std::string_view file);

/// The source in its one layout, comments kept; compiles to the same hash. Errors: the first of the syntax.
Result<std::string> format(std::string_view text);

/// Everything in force, defaults included, as a policy text without comments; compiles to the same hash. What
/// is hashed.
std::string canonical_text(const CompiledPolicy& policy);

}  // namespace signalbox::policy
