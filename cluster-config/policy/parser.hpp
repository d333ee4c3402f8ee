// Tokens to a Document, by recursive descent. After an error it goes on with the next statement, or the next item of a block.
#pragma once

#include "cluster-config/policy/syntax.hpp"

namespace signalbox::policy {

Document parse(const Lexed& lexed, std::vector<Diagnostic>& errors);

}  // namespace signalbox::policy
