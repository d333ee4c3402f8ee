// Which of the bus's messages a tap shows.
#pragma once

#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::observe {

struct Filter {
  std::vector<std::string> topics;    ///< prefixes; any of them
  std::vector<std::string> messages;  ///< names of message types; any of them
  std::vector<std::string> engines;   ///< a part of the topic; any of them
  std::vector<std::string> clusters;  ///< likewise
};

/// The topic prefixes that can hold what passes. Errors: not_found for a message type that is not in the catalog.
Result<std::vector<std::string>> subscriptions(const Filter& filter);
bool passes(const Filter& filter, const schema::Delivery& delivery);

/// One line for people: message, topic, sender, age, then the body as JSON.
std::string line_of(const schema::Delivery& delivery);

}  // namespace signalbox::observe
