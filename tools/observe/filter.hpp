// Which of the bus's messages a tap shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/schema/catalog.hpp"
#include "tools/fleet_view/expression.hpp"

namespace signalbox::observe {

/// As given on the command line. Each list: any of them; empty: no condition.
struct Filter {
  std::vector<std::string> topics;     ///< prefixes
  std::vector<std::string> messages;   ///< names of message types
  std::vector<std::string> engines;    ///< a part of the topic, or the message's engine
  std::vector<std::string> clusters;   ///< likewise
  std::vector<std::string> classes;    ///< named by the message or by one of its rows
  std::vector<std::string> decisions;  ///< ids
  std::string where;                   ///< a condition on fields
};

/// The options as a person would repeat them.
std::string to_text(const Filter& filter);

class Selection {
 public:
  /// Errors: not_found for a message type or field that is not in the catalog, invalid for a condition.
  static Result<Selection> make(const Filter& filter);

  /// The topic prefixes that can hold what passes.
  std::vector<std::string> subscriptions() const;
  /// The message types that can pass.
  bool passes(const schema::Delivery& delivery, const fleet_view::RowNames& names) const;
  /// By topics and types alone: then a lost message's topic tells whether it would have passed.
  bool by_topic() const;

 private:
  Filter filter_;
  std::vector<const schema::MessageInfo*> types_;
  std::optional<fleet_view::Expression> where_;
};

}  // namespace signalbox::observe
