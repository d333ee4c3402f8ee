// Numbers with units: what a policy may say, and how it is written back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster-config/policy/compiled.hpp"
#include "messages/base/result.hpp"

namespace signalbox::policy {

/// What a number measures. Base units: share 1, time seconds, count 1, tokens, tokens per second, factor 1.
enum class Dimension : std::uint8_t {
  share,   ///< "20%"
  factor,  ///< "0.5", without a unit
  count,   ///< "64", a whole number
  time,    ///< "250ms", "2s", "5min"
  tokens,  ///< "8000 tok"
  rate,    ///< "1200 tok/s"
};

/// "a share such as 20%".
std::string_view describe(Dimension dimension);

/// The value in base units of these digits and this unit. Errors: another dimension's unit, an unknown unit, a fraction where
/// a whole number is meant; `what` and `hint` are for a diagnostic.
Result<double> measure(std::string_view digits, std::string_view unit, Dimension dimension);

/// As a policy writes it; measure() of the result gives the same double.
std::string write(double value, Dimension dimension);

bool is_unit(std::string_view text);

/// "3.1", or "3" for 3.0; nothing for any other text. Allocates nothing.
std::optional<Version> read_version(std::string_view text);
std::string write(Version version);

}  // namespace signalbox::policy
