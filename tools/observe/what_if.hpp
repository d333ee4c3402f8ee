// What a decision would have been with one thing otherwise. With the decision's inputs it is made again, with the same
// draws; without them, the candidates that were recorded are compared again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/schema/traffic.hpp"
#include "tools/observe/explain.hpp"

namespace signalbox::observe {

struct WhatIf {
  enum class Kind : std::uint8_t {
    engine,   ///< that engine had served it
    slow,     ///< an engine were this many times slower
    without,  ///< an engine were not there
  } kind = Kind::engine;
  std::string engine;  ///< of slow: empty for the one that was chosen
  double factor = 1;
};

/// "engine=E", "slow=2x", "slow=E:2x", "without=E". Errors: invalid.
Result<WhatIf> parse_what_if(std::string_view text);

struct WhatIfAnswer {
  std::string sentence;
  std::string basis;                             ///< what it was computed from
  std::string before, after;                     ///< the engines chosen; empty: none
  bool exact = false;                            ///< made again from the recorded inputs
  std::vector<schema::CandidateRow> candidates;  ///< as they would have been compared
  std::vector<std::string> engines;              ///< their names, by EngineIndex
};

/// `record`: the decision's record as JSON. Errors: invalid for what cannot be answered, not_found for an engine that
/// the fleet or the decision does not know.
Result<WhatIfAnswer> answer_what_if(const std::string& record, const std::optional<FoundInputs>& inputs,
                                    const std::vector<std::string>& engines,
                                    const std::vector<WhatIf>& changes);

std::string as_text(const WhatIfAnswer& answer);
std::string as_json(const WhatIfAnswer& answer);

}  // namespace signalbox::observe
