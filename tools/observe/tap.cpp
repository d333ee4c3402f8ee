#include "tools/observe/tap.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <optional>

#include "tools/cli/observer.hpp"
#include "tools/fleet_view/traffic.hpp"
#include "tools/observe/follow.hpp"
#include "tools/observe/inbox.hpp"
#include "tools/observe/interrupt.hpp"
#include "tools/observe/printer.hpp"
#include "tools/recording/player.hpp"
#include "tools/recording/writer.hpp"

namespace signalbox::observe {
namespace {

/// What names rows of other messages; a tap always listens to them.
const std::vector<std::string> name_topics{"policy/", "fleet/"};

TapStyle style_of(const TapOptions& options) {
  if (options.quiet || options.stats) return TapStyle::silent;
  if (options.diff || !options.between.empty()) return TapStyle::diffs;
  if (options.json) return TapStyle::json;
  return options.full ? TapStyle::blocks : TapStyle::lines;
}

bool is_name(const schema::Delivery& delivery) {
  return std::holds_alternative<schema::Policy>(delivery.message) ||
         std::holds_alternative<schema::FleetTable>(delivery.message);
}

/// Of a difference between two versions: these snapshots only.
bool is_between(const TapOptions& options, const schema::Delivery& delivery) {
  if (options.between.empty()) return true;
  const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&delivery.message);
  if (snapshot == nullptr) return false;
  const std::string version = fmt::format("{}", snapshot->version);
  return version == options.between.front() || version == options.between.back();
}

void print_stats(const TapOptions& options, const fleet_view::Traffic& traffic, Instant now) {
  const auto tables = traffic.tables(now);
  fmt::print("{}", options.json ? as_json(tables) : as_text(tables));
  std::fflush(stdout);
}

// --- live

/// The side of a live tap that runs in the bus thread: selects, counts, records, and hands over what is shown.
class Ear {
 public:
  Ear(const TapOptions& options, const Selection& selection, Printer& printer)
      : options_(options), selection_(selection), printer_(printer), traffic_(cli::monotonic_now()) {}

  Status record_to(const std::string& path, const recording::Header& header) {
    auto writer = recording::Writer::create(path, header);
    if (!writer) return tl::unexpected(std::move(writer.error()));
    writer_ = std::move(*writer);
    return {};
  }

  bus::NodeHandlers handlers() {
    bus::NodeHandlers out;
    out.on_accepted = [this](bus::Frames frames, const schema::Delivery& delivery, Instant arrived) {
      accepted(frames, delivery, arrived);
    };
    out.on_delivery = [this](schema::DeliveryPtr delivery) {
      if (passes_) inbox_.put(std::move(delivery), bytes_);
    };
    out.on_drop = [this](bus::Drop reason, std::string_view sender, std::string_view topic,
                         const Error& why) {
      const std::lock_guard lock(mutex_);
      traffic_.refused(std::string(sender));
      if (options_.drops)
        fmt::print(stderr, "dropped {} from {} on {}: {}\n", name_of(reason), sender, topic, why.text());
    };
    return out;
  }

  Inbox& inbox() { return inbox_; }

  std::string render(const schema::Delivery& delivery) {
    const std::lock_guard lock(mutex_);
    return printer_.render(delivery);
  }
  void tick(Instant now) {
    const std::lock_guard lock(mutex_);
    if (writer_ && status_) status_ = writer_->tick(now);
  }
  void print(Instant now) {
    const std::lock_guard lock(mutex_);
    print_stats(options_, traffic_, now);
  }
  /// After the bus thread has ended.
  Status close() {
    if (writer_ && status_) status_ = writer_->close();
    return status_;
  }
  const fleet_view::Traffic& traffic() const { return traffic_; }
  const std::optional<recording::Writer>& writer() const { return writer_; }

 private:
  void accepted(bus::Frames frames, const schema::Delivery& delivery, Instant arrived) {
    const std::lock_guard lock(mutex_);
    printer_.learn(delivery, arrived);
    passes_ = selection_.passes(delivery, printer_.names()) && is_between(options_, delivery);
    bytes_ = 0;
    for (const bus::FrameView frame : frames) bytes_ += frame.size();
    if (passes_) traffic_.on(delivery, bytes_);
    if (writer_ && status_ && (passes_ || is_name(delivery)))
      status_ =
          writer_->write(arrived, delivery.age, delivery.envelope.kind, delivery.topic, frames[1], frames[2]);
  }

  const TapOptions& options_;
  const Selection& selection_;
  Printer& printer_;
  Inbox inbox_;
  bool passes_ = false;    // of the message that is being delivered: only the bus thread looks at it
  std::size_t bytes_ = 0;  // likewise
  std::mutex mutex_;       // of what follows and of what the printer has learnt
  fleet_view::Traffic traffic_;
  std::optional<recording::Writer> writer_;
  Status status_;
};

bool is_there(const bus::NodeStats& stats) {
  return stats.forwarders_joined > 0 || stats.received.total().accepted > 0;
}

recording::Header header_of(const cli::Fleet& fleet, const Filter& filter) {
  recording::Header out;
  out.fleet = fleet.config.fleet;
  out.began = cli::monotonic_now();
  out.began_wall = cli::wall_now();
  out.filter = to_text(filter);
  out.port_base = fleet.config.port_base;
  if (const auto text = cli::read_file(fleet.file)) out.config = *text;
  out.kinds = recording::kinds_of_this_build();
  return out;
}

/// What was wanted and is not in the output, to the message.
void tell_losses(const TapOptions& options, const Selection& selection, const Ear& ear, std::uint64_t late) {
  if (const std::uint64_t lost = ear.traffic().lost(); lost > 0)
    fmt::print(stderr, "tap: {}{} messages were lost on their way here: their topics' numbers jump\n",
               selection.by_topic() ? "" : "of the topics that passed, ", lost);
  if (late > 0) fmt::print(stderr, "tap: {} messages came faster than they could be shown\n", late);
  if (ear.writer())
    fmt::print(stderr, "tap: recorded {} messages in {} bytes to {}\n", ear.writer()->stats().messages,
               ear.writer()->stats().bytes, options.record);
}

std::vector<std::string> with_names(std::vector<std::string> topics) {
  if (topics.size() != 1 || !topics.front().empty())
    topics.insert(topics.begin(), name_topics.begin(), name_topics.end());
  return topics;
}

Status listen(const TapOptions& options, const Selection& selection) {
  const auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(source.error());
  Printer printer(style_of(options), options.json);
  Ear ear(options, selection, printer);
  if (!options.record.empty())
    if (Status status = ear.record_to(options.record, header_of(source->fleet, options.filter)); !status)
      return status;
  auto node = cli::join_source(*source, with_names(selection.subscriptions()), ear.handlers());
  if (!node) return tl::unexpected(node.error());

  constexpr Duration patience = 3s;
  const Instant began = cli::monotonic_now();
  const Instant end = options.seconds > 0 ? began + from_seconds(options.seconds) : end_of_time;
  Instant next_stats = options.every_s > 0 ? began + from_seconds(options.every_s) : end_of_time;
  bool told = false;
  for (Instant now = began;
       !interrupted() && now < end && (options.most == 0 || printer.shown() < options.most);
       now = cli::monotonic_now()) {
    if (const auto delivery = ear.inbox().take()) {
      if (!printer.write(ear.render(*delivery))) break;
    } else if (!told && now - began > patience && !is_there((*node)->stats())) {
      fmt::print(stderr, "{}\n", cli::nobody_there(source->fleet).text());
      told = true;
    }
    ear.tick(now);
    if (now >= next_stats) {
      ear.print(now);
      next_stats += from_seconds(options.every_s);
    }
  }
  const bool bus_is_there = is_there((*node)->stats());
  (*node)->stop();
  Status status = ear.close();
  if (options.stats) ear.print(cli::monotonic_now());
  tell_losses(options, selection, ear, ear.inbox().dropped());
  if (!status) return status;
  if (!bus_is_there && !interrupted()) return tl::unexpected(cli::nobody_there(source->fleet));
  return {};
}

// --- from a file

/// Where in the recording to begin.
Instant begin_of(const TapOptions& options, const recording::Reader& reader) {
  const double at_s = options.source.at_s.value_or(0);
  return (at_s < 0 ? reader.last() : reader.first()) + from_seconds(at_s);
}

Status read(const TapOptions& options, const Selection& selection) {
  auto reader = recording::Reader::open(options.replay);
  if (!reader) return tl::unexpected(reader.error());
  Printer printer(style_of(options), options.json);
  const Instant from = begin_of(options, *reader);
  fleet_view::Traffic traffic(from);
  const Instant began = cli::monotonic_now();
  const Instant end = options.seconds > 0 ? from + from_seconds(options.seconds) : end_of_time;
  while (!interrupted() && (options.most == 0 || printer.shown() < options.most)) {
    const auto message = reader->next();
    if (!message || message->arrived > end) break;
    printer.learn(*message->delivery, message->arrived);
    if (message->arrived < from) continue;
    if (!selection.passes(*message->delivery, printer.names()) || !is_between(options, *message->delivery))
      continue;
    if (options.speed && *options.speed > 0) {
      const Instant due = began + from_seconds(to_seconds(message->arrived - from) / *options.speed);
      while (!interrupted() && cli::monotonic_now() < due) pause(due - cli::monotonic_now());
    }
    traffic.on(*message->delivery, 0);
    if (!printer.write(printer.render(*message->delivery))) return {};
  }
  if (options.stats) print_stats(options, traffic, reader->last());
  cli::tell_damage(*reader);
  return {};
}

Status serve(const TapOptions& options) {
  auto reader = recording::Reader::open(options.replay);
  if (!reader) return tl::unexpected(reader.error());
  const double length = to_seconds(reader->last() - reader->first());
  recording::PlayerOptions how{options.source.bus, options.speed.value_or(1), begin_of(options, *reader)};
  auto player = recording::Player::start(std::move(*reader), std::move(how));
  if (!player) return tl::unexpected(player.error());
  fmt::print(stderr,
             "tap: playing {:.1f} s of fleet '{}' at speed {} in {}\n"
             "tap: look at it with --bus {}; Ctrl-C ends it\n",
             length, (*player)->reader().header().fleet, options.speed.value_or(1), options.source.bus,
             options.source.bus);
  bool ended = false;
  while (!interrupted()) {
    const auto next = (*player)->step();
    if (!next && !ended) {
      fmt::print(stderr,
                 "tap: its end; {} messages were said and the last of each topic can still be heard\n",
                 (*player)->said());
      cli::tell_damage((*player)->reader());
      ended = true;
    }
    if (next.value_or(1s) > Duration::zero()) pause(next.value_or(1s));
  }
  return {};
}

}  // namespace

Status tap(const TapOptions& options) {
  Filter filter = options.filter;
  if (options.diff || !options.between.empty())
    filter.messages = {std::string(schema::RoutingSnapshot::info.name)};
  const auto selection = Selection::make(filter);
  if (!selection) return tl::unexpected(selection.error());
  catch_interrupts();
  if (!options.follow.empty()) return follow(options, *selection);
  if (!options.replay.empty() && !options.source.bus.empty()) return serve(options);
  return options.replay.empty() ? listen(options, *selection) : read(options, *selection);
}

}  // namespace signalbox::observe
