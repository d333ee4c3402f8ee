#include "tools/cli/source.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "tools/cli/observer.hpp"
#include "tools/recording/player.hpp"

namespace signalbox::cli {
namespace {

/// The fleet that a recording is of, as its configuration was then.
Result<Fleet> fleet_of(const recording::Header& header, const std::string& file) {
  config::Overrides overrides;
  if (header.port_base > 0) overrides.port_base = header.port_base;
  config::Parsed parsed = config::parse_config(header.config, file, overrides);
  if (!parsed.config)
    return invalid("the configuration in the recording is not one that this build reads\n" +
                       config::render(parsed.mistakes, "configuration"),
                   file);
  return Fleet{file, overrides, std::move(*parsed.config)};
}

bool wanted(const std::vector<std::string>& prefixes, std::string_view topic) {
  return prefixes.empty() || std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
           return topic.starts_with(prefix);
         });
}

Result<Source> open_recording(const SourceOptions& options) {
  auto reader = recording::Reader::open(options.recording);
  if (!reader) return tl::unexpected(std::move(reader.error()));
  auto fleet = fleet_of(reader->header(), options.recording);
  if (!fleet) return tl::unexpected(std::move(fleet.error()));
  Source out{std::move(*fleet), true, std::move(*reader), end_of_time};
  if (options.at_s) {
    const Duration at = from_seconds(*options.at_s);
    out.until = (*options.at_s < 0 ? out.recording->last() : out.recording->first()) + at;
  }
  return out;
}

Result<Source> open_replay(const std::string& folder) {
  auto text = read_file(recording::header_file(folder));
  if (!text)
    return fail(ErrorKind::not_found, "no replay runs here", folder,
                "signalbox tap --replay FILE --bus DIR starts one");
  auto header = recording::parse_header(*text);
  if (!header) return tl::unexpected(std::move(header.error()).within(folder));
  auto fleet = fleet_of(*header, recording::header_file(folder));
  if (!fleet) return tl::unexpected(std::move(fleet.error()));
  const bus::ForwarderEndpoints endpoints = recording::endpoints_in(folder);
  fleet->config.security = config::Security::none;
  fleet->config.state_dir = folder;
  fleet->config.buses = {{endpoints.id, endpoints.publish, endpoints.subscribe, {}, {}}};
  return Source{std::move(*fleet), true, {}, end_of_time};
}

}  // namespace

void add_source_options(CLI::App& command, SourceOptions& options) {
  add_fleet_options(command, options.fleet);
  auto* recording =
      command.add_option("--recording", options.recording, "look at a recording instead of a fleet")
          ->type_name("FILE");
  command
      .add_option("--at", options.at_s, "of a recording: this long after its begin; negative: before its end")
      ->type_name("SECONDS")
      ->needs(recording);
  command
      .add_option("--bus", options.bus, "listen to the replay that 'tap --replay FILE --bus DIR' runs there")
      ->type_name("DIR")
      ->excludes(recording);
}

Result<Source> open_source(const SourceOptions& options) {
  if (!options.recording.empty()) return open_recording(options);
  if (!options.bus.empty()) return open_replay(options.bus);
  auto fleet = open_fleet(options.fleet);
  if (!fleet) return tl::unexpected(std::move(fleet.error()));
  return Source{std::move(*fleet), false, {}, end_of_time};
}

Result<std::unique_ptr<bus::Node>> join_source(const Source& source, std::vector<std::string> subscriptions,
                                               bus::NodeHandlers handlers) {
  return join_bus(source.fleet, tool_id, std::move(subscriptions), std::move(handlers));
}

Result<Observation> observe(Source& source, std::vector<std::string> subscriptions, Duration longest,
                            const std::function<bool(const fleet_view::FleetView&)>& enough) {
  if (!source.recording) {
    auto view = observe(source.fleet, std::move(subscriptions), longest, enough);
    if (!view) return tl::unexpected(std::move(view.error()));
    return Observation{std::move(*view), {}, monotonic_now()};
  }
  Observation out{{}, {}, std::min(source.until, source.recording->last())};
  while (const auto message = source.recording->next()) {
    if (message->arrived > source.until) break;
    if (!wanted(subscriptions, message->delivery->topic)) continue;
    out.view.on(*message->delivery, message->arrived);
    out.timeline.on(*message->delivery, message->arrived);
  }
  tell_damage(*source.recording);
  return out;
}

void tell_damage(const recording::Reader& reader) {
  for (const std::string& damage : reader.damage()) fmt::print(stderr, "recording: {}\n", damage);
  if (const std::string unknown = unknown_to_this_build(reader.header()); !unknown.empty())
    fmt::print(stderr, "recording: {}\n", unknown);
  if (reader.undecoded() > 0)
    fmt::print(stderr, "recording: {} messages cannot be read by this build\n", reader.undecoded());
}

}  // namespace signalbox::cli
