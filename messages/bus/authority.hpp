// Who may say what on which topic. The body is not looked at.
#pragma once

#include <string_view>

#include "messages/bus/keys.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::bus {

/// The nonce of a topic "@nonce/rest", or empty; `topic` loses it.
std::string_view take_nonce(std::string_view& topic);

/// denied unless `topic` has the form of this message's topics and every part of it that names its author
/// names `source`. With an identity (security on), its role must be one of the message's authors and the topic's
/// cluster its own if it has one.
Status check_author(const schema::MessageInfo& info, std::string_view topic, const ProcessName& source,
                    const Identity* identity);

}  // namespace signalbox::bus
