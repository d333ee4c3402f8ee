#include "messages/bus/endpoint.hpp"

#include <fmt/format.h>

#include "messages/bus/files.hpp"

namespace signalbox::bus {

namespace {

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("localhost:") || address.starts_with("[::1]:");
}

}  // namespace

Status check_endpoint(std::string_view endpoint, bool secure) {
  const std::string where(endpoint);
  if (endpoint.starts_with("ipc:///")) {
    const auto path = endpoint.substr(6);
    if (path.size() > 100)
      return invalid("a path of over 100 bytes is no socket", where, "use a shorter folder");
    return secure ? Status{} : check_private_folder(std::string(path.substr(0, path.rfind('/') + 1)));
  }
  if (!endpoint.starts_with("tcp://") || endpoint.rfind(':') < 6)
    return invalid("neither tcp://host:port nor ipc:///path", where);
  if (!secure && !is_loopback(endpoint.substr(6)))
    return fail(ErrorKind::denied, "security = \"none\" beyond this host", where,
                "use security = \"curve\", or a loopback address");
  return {};
}

}  // namespace signalbox::bus
