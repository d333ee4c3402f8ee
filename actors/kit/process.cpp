#include "actors/kit/process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>

#include "actors/kit/beat.hpp"
#include "actors/kit/log.hpp"
#include "messages/bus/incarnation.hpp"

namespace signalbox::kit {

Instant monotonic_now() {
  return instant_at(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

Duration unix_offset() {
  const auto unix_now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(unix_now) - monotonic_now().time_since_epoch();
}

/// Publishes once the bus is joined; nobody speaks before.
class Process::BusPorts : public Ports {
 public:
  BusPorts(const StateDir& state, const std::string& level) : state_(state), logger_(make_logger(level)) {}

  Status persist(const Persist& what) override { return state_.write(what); }
  void publish(const schema::Message& message) override {
    bus::Node* node = node_;
    if (!node) return;
    if (const auto said = node->publish(message); !said && refused_++ % 100 == 0)
      log({schema::Severity::warning, "publish_refused",
           fmt::format("{}: {} ({} refused so far)", schema::info_of(message).name, said.error().text(),
                       refused_.load())});
  }
  void log(const LogLine& line) override { write_line(*logger_, line); }

  void join(std::unique_ptr<bus::Node> node) {
    owned_ = std::move(node);
    node_ = owned_.get();
  }
  void leave() {
    node_ = nullptr;
    if (owned_) owned_->stop();
  }
  bus::NodeStats stats() const { return owned_ ? owned_->stats() : bus::NodeStats{}; }

 private:
  StateDir state_;
  std::shared_ptr<spdlog::logger> logger_;
  std::unique_ptr<bus::Node> owned_;
  std::atomic<bus::Node*> node_{nullptr};
  std::atomic<std::uint64_t> refused_{0};
};

namespace {

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

sigset_t served_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&out, s);
  return out;
}

constexpr Duration loop_late_from = 1s;

std::string joined(const std::string& folder, std::string_view rest) {
  return folder + "/" + std::string(rest);
}

}  // namespace

Process::Process(ProcessOptions options) : options_(std::move(options)), started_(monotonic_now()) {}

Result<std::unique_ptr<Process>> Process::open(ProcessOptions options) {
  std::unique_ptr<Process> out(new Process(std::move(options)));
  const config::Config& config = out->config();
  const config::Process* row = config.find_process(out->id());
  out->identity_ = {out->id(), out->options_.role, row ? row->cluster : ClusterName()};
  if (row) out->endpoint_ = row->listen;
  auto state = StateDir::open(joined(config.state_dir, "processes/" + out->id().str()));
  if (!state) return tl::unexpected(state.error());
  out->state_ = *std::move(state);
  auto incarnation = bus::next_incarnation(out->state_->path(), out->id());
  if (!incarnation) return tl::unexpected(incarnation.error());
  out->incarnation_ = incarnation->incarnation;
  if (config.security == config::Security::curve) {
    auto keys = bus::load_keyring(config.keys_dir, out->id());
    if (!keys) return tl::unexpected(keys.error());
    out->keyring_ = *std::move(keys);
  }
  out->ports_ = out->bus_ = std::make_shared<BusPorts>(*out->state_, out->options_.log_level);
  if (!incarnation->kept)
    out->log(schema::Severity::critical, "incarnation_not_kept", incarnation->kept.error().text());
  // Signals are for the main thread alone: blocked here, before any other thread exists.
  const sigset_t signals = served_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  // One queue to wait on: CAF's default, stealing work, polls for it and takes half a core for an idle cluster.
  out->system_config_.set("scheduler.policy", caf::atom("sharing"));
  out->system_config_.set("scheduler.max-threads", 2);
  out->system_ = std::make_unique<caf::actor_system>(out->system_config_);
  return out;
}

Process::~Process() {
  if (bus_) bus_->leave();
  for (auto& listener : listeners_) caf::anon_send_exit(listener.actor, caf::exit_reason::kill);
  listeners_.clear();
  system_.reset();
}

std::vector<std::string> Process::heard_by(const RoleInfo& info) {
  std::vector<std::string> out;
  for (const std::string_view name : info.hears)
    if (const auto* message = schema::find_info(name)) out.emplace_back(schema::topic_root(*message));
  return out;
}

Status Process::join_bus() {
  bus::NodeOptions node;
  node.identity = identity_;
  node.incarnation = incarnation_;
  for (const auto& forwarder : config().buses)
    node.forwarders.push_back({forwarder.id, forwarder.publish, forwarder.subscribe});
  node.keyring = keyring_;
  node.config_fingerprint = config().digest.fingerprint();
  for (const auto& listener : listeners_)
    for (const auto& prefix : listener.prefixes)
      if (std::find(node.subscriptions.begin(), node.subscriptions.end(), prefix) == node.subscriptions.end())
        node.subscriptions.push_back(prefix);
  bus::NodeHandlers handlers;
  handlers.on_delivery = [this](schema::DeliveryPtr delivery) { dispatch(delivery); };
  auto joined_node = bus::Node::start(std::move(node), std::move(handlers));
  if (!joined_node) return tl::unexpected(joined_node.error());
  bus_->join(*std::move(joined_node));
  return {};
}

/// In the bus thread.
void Process::dispatch(const schema::DeliveryPtr& delivery) const {
  for (const auto& listener : listeners_)
    for (const auto& prefix : listener.prefixes)
      if (delivery->topic.starts_with(prefix)) {
        caf::anon_send(listener.actor, delivery);
        break;
      }
}

int Process::run() {
  if (const auto on_bus = join_bus(); !on_bus) {
    log(schema::Severity::critical, "no_bus", on_bus.error().text());
    return 1;
  }
  log(schema::Severity::info, "started",
      fmt::format("{} {} of fleet {}, incarnation {}, process {}", name_of(options_.role), id(),
                  config().fleet, incarnation_.counter, ::getpid()));
  const caf::actor beat_actor =
      system_->spawn<BeatActor>(config().intervals.beat, [this](Duration loop_lag) { turned(loop_lag); });
  for (const auto& listener : listeners_) caf::anon_send(listener.actor, StartAtom::value);
  watchdog_.started();
  serve_signals();
  stopping_ = true;
  watchdog_.stopping();
  for (const auto& task : stop_tasks_) task();
  caf::anon_send_exit(beat_actor, caf::exit_reason::kill);
  log(schema::Severity::info, "stopped", fmt::format("{} {}", name_of(options_.role), id()));
  return failed_ ? 1 : 0;
}

void Process::turned(Duration loop_lag) const {
  const Duration others = loops_.latest(monotonic_now());
  // A loop that waits for its own next turn is not late.
  ports_->publish(beat(others < loop_late_from ? loop_lag : std::max(loop_lag, others)));
  watchdog_.turned(others);
}

void Process::serve_signals() {
  const sigset_t signals = served_signals();
  for (;;) {
    int got = 0;
    if (sigwait(&signals, &got) != 0) continue;
    if (got != SIGHUP) {
      log(schema::Severity::info, "stopping", failed_ ? "after a failure" : "as told");
      return;
    }
    log(schema::Severity::info, "reloading", options_.config_file);
    for (const auto& task : reload_tasks_) task();
  }
}

void Process::give_up(const std::string& reason) {
  log(schema::Severity::critical, "giving_up", reason);
  failed_ = true;
  ::kill(::getpid(), SIGTERM);
}

void Process::log(schema::Severity severity, std::string_view event, std::string_view text) const {
  ports_->log({severity, event, std::string(text)});
}

bus::NodeStats Process::bus_stats() const { return bus_->stats(); }

schema::Beat Process::beat(Duration loop_lag) const {
  const Standing standing = board_->merged();
  const bus::NodeStats stats = bus_stats();
  const bus::SenderStats total = stats.received.total();
  schema::Beat out;
  out.role = options_.role;
  out.id = id();
  out.cluster = cluster();
  out.ready = standing.ready && !stopping_;
  out.state = stopping_ ? "stopping" : standing.state.substr(0, 256);
  out.leads = standing.leads;
  out.term = standing.term;
  out.snapshot = standing.snapshot;
  out.policy = standing.policy;
  out.uptime = monotonic_now() - started_;
  out.loop_lag = loop_lag;
  out.resident_bytes = resident_bytes();
  out.messages_in = total.accepted;
  for (const auto dropped : total.dropped) out.messages_refused += dropped;
  out.messages_refused -= total.dropped_for(bus::Drop::duplicate);
  out.messages_lost = total.missed - std::min(total.missed, total.recovered);
  out.actors_restarted = board_->restarts();
  out.endpoint = endpoint_;
  if (const auto* row = config().find_process(id())) out.operator_endpoint = row->operator_listen;
  return out;
}

}  // namespace signalbox::kit
