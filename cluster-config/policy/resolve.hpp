// A Document to a CompiledPolicy: names are looked up, numbers are judged, defaults are filled in.
#pragma once

#include "cluster-config/policy/syntax.hpp"

namespace signalbox::policy {

/// Reports what is wrong and resolves the rest; the result is a policy only if nothing was reported, by whoever.
CompiledPolicy resolve(const Document& document, std::vector<Diagnostic>& errors);

/// Classes that no request can reach, broken `never` rules, failed tests. For a policy that resolve() found good.
void check_assertions(const Document& document, const CompiledPolicy& policy,
                      std::vector<Diagnostic>& errors);

/// A request that the class asks for, if earlier classes leave it any.
bool is_reachable(const CompiledPolicy& policy, ClassIndex index);

}  // namespace signalbox::policy
