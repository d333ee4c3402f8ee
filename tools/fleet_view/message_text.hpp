// Messages for people: values with their units, rows with the names of what they index.
#pragma once

#include <string>

#include "tools/fleet_view/fields.hpp"

namespace signalbox::fleet_view {

/// One line: message, topic, sender, sequence, age, then "field value unit" with lists as their length.
std::string line_of(const schema::Delivery& delivery, const RowNames& names);

/// The same whole: a line for the envelope, one for each field, and lists as tables below.
std::string block_of(const schema::Delivery& delivery, const RowNames& names);

}  // namespace signalbox::fleet_view
