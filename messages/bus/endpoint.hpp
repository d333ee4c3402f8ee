// Where forwarders are, and where it is safe to speak without keys.
#pragma once

#include <string>
#include <string_view>

#include "messages/base/ids.hpp"
#include "messages/base/result.hpp"

namespace signalbox::bus {

/// One forwarder: publishers connect to `publish`, subscribers to `subscribe`; tcp://host:port or
/// ipc:///path.
struct ForwarderEndpoints {
  ProcessName id;
  std::string publish;
  std::string subscribe;
};

/// Refuses what is neither tcp:// nor ipc://, and, with `secure` false, every address but loopback and a
/// socket in a folder that only this user may enter.
Status check_endpoint(std::string_view endpoint, bool secure);

}  // namespace signalbox::bus
