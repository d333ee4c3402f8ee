// Conditions on the fields of messages, as `tap --where` takes them:
//
//   waiting > 4 and not (scrape == ok)        weights.engine == w1 or age_s >= 0.5        detail ~ "no byte"
//
//   or, and, not, ( )      ||, && and ! likewise
//   == != < <= > >=        numbers; durations in seconds, or with a unit: 250ms, 1.5s, 2min
//   == != ~                text; ~ is "contains"; words need no quotes
//   a field alone          it is there, and neither false nor 0 nor empty
//
// A comparison with a field in a list holds if it holds for one element; != if it does for all. Beside the message's own fields there are those of its envelope:
// topic, message, source, sequence, age_s.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"
#include "tools/fleet_view/fields.hpp"

namespace signalbox::fleet_view {

class Expression {
 public:
  /// Parses, and refuses a field that none of these message types has. Errors: invalid, not_found.
  static Result<Expression> parse(std::string_view text,
                                  const std::vector<const schema::MessageInfo*>& types);

  bool holds(const schema::Delivery& delivery, const RowNames& names) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
};

}  // namespace signalbox::fleet_view
