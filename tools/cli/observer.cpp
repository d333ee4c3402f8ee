#include "tools/cli/observer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "messages/bus/incarnation.hpp"

namespace signalbox::cli {

Instant monotonic_now() {
  return Instant{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

Duration wall_now() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
}

Result<std::unique_ptr<bus::Node>> join_bus(const Fleet& fleet, std::string_view id,
                                            std::vector<std::string> subscriptions,
                                            bus::NodeHandlers handlers) {
  const ProcessName name(id);
  bus::NodeOptions options;
  options.identity = {name, Role::tool, {}};
  options.forwarders = forwarders_of(fleet.config);
  options.subscriptions = std::move(subscriptions);
  options.config_fingerprint = fleet.config.digest.fingerprint();
  if (fleet.config.security == config::Security::curve) {
    auto keyring = bus::load_keyring(fleet.config.keys_dir, name);
    if (!keyring) return tl::unexpected(std::move(keyring.error()));
    options.keyring = std::move(*keyring);
  }
  std::error_code error;
  std::filesystem::create_directories(fleet.config.state_dir, error);
  if (error) return fail(ErrorKind::io, error.message(), fleet.config.state_dir);
  const auto incarnation = bus::next_incarnation(fleet.config.state_dir, name);
  if (!incarnation) return tl::unexpected(incarnation.error());
  options.incarnation = incarnation->incarnation;
  return bus::Node::start(std::move(options), std::move(handlers));
}

Error nobody_there(const Fleet& fleet) {
  std::string tried;
  for (const config::Bus& bus : fleet.config.buses) tried += (tried.empty() ? "" : ", ") + bus.subscribe;
  return {
      ErrorKind::unavailable, fmt::format("no forwarder of the bus is there ({})", tried), fleet.config.fleet,
      fmt::format(
          "is the fleet up? signalbox up {}; or name the right one with --config, --port-base, --state-dir",
          fleet.file)};
}

Result<fleet_view::FleetView> observe(const Fleet& fleet, std::vector<std::string> subscriptions,
                                      Duration longest,
                                      const std::function<bool(const fleet_view::FleetView&)>& enough) {
  std::mutex mutex;
  std::condition_variable heard;
  fleet_view::FleetView view;
  std::size_t count = 0;
  bus::NodeHandlers handlers;
  handlers.on_delivery = [&](const schema::DeliveryPtr& delivery) {
    const std::lock_guard lock(mutex);
    view.on(*delivery, monotonic_now());
    ++count;
    heard.notify_one();
  };
  auto node = join_bus(fleet, tool_id, std::move(subscriptions), std::move(handlers));
  if (!node) return tl::unexpected(std::move(node.error()));
  {
    std::unique_lock lock(mutex);
    heard.wait_for(lock, longest, [&] { return count > 0 && enough(view); });
  }
  const bool joined = (*node)->stats().forwarders_joined > 0;
  (*node)->stop();  // from here on nobody else writes
  if (count == 0 && !joined) return tl::unexpected(nobody_there(fleet));
  return view;
}

}  // namespace signalbox::cli
