#include "tools/launcher/launcher.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "messages/schema/catalog.hpp"
#include "tools/cli/observer.hpp"
#include "tools/fleet_view/show.hpp"
#include "tools/launcher/spawn.hpp"

namespace signalbox::launcher {
namespace {

constexpr Duration grace = 5s;  // from SIGTERM to SIGKILL, beside what routers get to drain
constexpr Duration show_every = 1s;
constexpr Duration fresh_beat = 5s;

sigset_t handled_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

Launcher::Launcher(LauncherOptions options)
    : options_(std::move(options)), config_(options_.fleet.config), tick_(loop_, [this] { tick(); }) {
  RestartRule rule;
  rule.silence = config_.intervals.watchdog;
  for (PlannedProcess& plan : plan_processes(config_, options_.fleet.file))
    children_.push_back({std::move(plan), Supervised(rule), {}, {}, {}});
}

Launcher::~Launcher() {
  for (const Child& child : children_) signal_group(child.process.pid, SIGKILL);
}

Status Launcher::run() {
  if (const Status opened = open(); !opened) return opened;
  options_.note(fmt::format("starting {} processes of fleet {}", children_.size(), config_.fleet));
  for (Child& child : children_) child.life.want(loop_.now());
  tick();
  join_bus();
  loop_.run();
  if (node_) node_->stop();
  cli::remove_state(config_.state_dir);
  options_.note("everything is stopped");
  return {};
}

Status Launcher::open() {
  const sigset_t set = handled_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // before any thread exists, so that none of them takes a signal
  signals_ = net::Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.valid()) return fail(ErrorKind::io, std::generic_category().message(errno), "signalfd");
  loop_.watch(signals_.get(), *this);
  auto control =
      ControlServer::listen(loop_, config_.state_dir, [this](auto question) { return answer(question); });
  if (!control) return tl::unexpected(control.error());
  control_ = std::move(*control);
  auto notices = Notices::listen(loop_, config_.intervals.watchdog, [this](pid_t pid) {
    for (Child& child : children_)
      if (child.process.pid == pid) child.life.on_alive(loop_.now());
  });
  if (!notices) return tl::unexpected(notices.error());
  notices_ = std::move(*notices);
  return {};
}

void Launcher::join_bus_with_new_keys() {
  if (config_.security != config::Security::curve) return;
  const auto now = bus::rotation_of(config_.keys_dir);
  if (!now || keys_ == *now) return;
  options_.note(fmt::format("keys of generation {} are taken", now->generation));
  if (node_) node_->stop();
  node_.reset();
  join_bus();
}

void Launcher::join_bus() {
  if (const auto keys = bus::rotation_of(config_.keys_dir)) keys_ = *keys;
  bus::NodeHandlers handlers;
  handlers.on_delivery = [this](const schema::DeliveryPtr& delivery) {
    loop_.post([this, delivery] { view_.on(*delivery, loop_.now()); });
  };
  auto node = cli::join_bus(options_.fleet, cli::launcher_id,
                            {"beat/", "verdict/", "signal/", "fleet/", "snapshot/", "alive/", "receipt/",
                             "demand/", "outcome/", "policy/", "alert/"},
                            std::move(handlers));
  if (node)
    node_ = std::move(*node);
  else
    options_.note(fmt::format("cannot listen to the bus: {}", node.error().text()));
}

void Launcher::on_ready(std::uint32_t) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    on_signal(static_cast<int>(info.ssi_signo));
}

void Launcher::on_signal(int signal) {
  if (signal == SIGCHLD) {
    reap();
  } else if (signal == SIGHUP && !options_.on_terminal) {
    options_.note("reload: SIGHUP to every process");
    for (const Child& child : children_)
      if (child.process.pid > 0) ::kill(child.process.pid, SIGHUP);
  } else if (stopping_) {
    options_.note("asked again: killing what is left");
    for (const Child& child : children_) signal_group(child.process.pid, SIGKILL);
  } else {
    begin_stop();
  }
  tick();
}

void Launcher::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    const auto child = std::find_if(children_.begin(), children_.end(),
                                    [&](const Child& c) { return c.process.pid == pid; });
    if (child == children_.end()) continue;
    signal_group(pid, SIGKILL);  // what it may have started and left
    child->process = {};
    child->last_end = describe_end(status);
    const bool told = WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
    const std::string words =
        status == 0 || told ? std::string() : last_words(log_of(*child), child->log_before);
    if (!words.empty()) child->last_end += ": " + words;
    child->life.on_ended(loop_.now());
    options_.note(fmt::format("{}: ended, {}{}", child->plan.name, child->last_end, what_next(*child)));
    save_state();
  }
}

std::string Launcher::log_of(const Child& child) const {
  return fmt::format("{}/logs/{}.log", config_.state_dir, child.plan.name);
}

std::string Launcher::what_next(const Child& child) const {
  if (child.life.state() == ChildState::crash_loop)
    return fmt::format("; {}; see {}", sentence_of(ChildState::crash_loop), log_of(child));
  if (child.life.due())
    return fmt::format("; next start in {:.1f} s", to_seconds(*child.life.due() - loop_.now()));
  return {};
}

void Launcher::start_due() {
  for (Child& child : children_)
    if (child.life.due() && *child.life.due() <= loop_.now()) start(child);
}

/// A process whose loops do not turn any more is started anew; frozen, it would not heed a request to stop.
void Launcher::end_hung() {
  const Duration late = loop_.now() - std::min(due_, loop_.now());
  for (Child& child : children_) {
    child.life.forgive(late);
    if (!child.life.hangs(loop_.now())) continue;
    options_.note(fmt::format("{}: hangs, its loops have not turned for {:.0f} s; it is killed",
                              child.plan.name, to_seconds(config_.intervals.watchdog)));
    child.life.on_alive(loop_.now());
    signal_group(child.process.pid, SIGKILL);
  }
}

void Launcher::start(Child& child) {
  const std::string log = log_of(child);
  std::error_code none;
  child.log_before = std::filesystem::file_size(log, none);
  if (none) child.log_before = 0;
  const auto pid = spawn(options_.program, child.plan.arguments, log);
  if (!pid) {
    child.last_end = pid.error().text();
    child.life.on_ended(loop_.now());
    options_.note(fmt::format("{}: cannot be started: {}", child.plan.name, child.last_end));
    return;
  }
  child.process = cli::process_now(*pid).value_or(cli::ProcessRef{*pid, 0});
  child.life.on_started(loop_.now());
  options_.note(fmt::format("{}: started as process {} ({}{}{})", child.plan.name, *pid, child.plan.role,
                            child.plan.serves.empty() ? "" : " at ", child.plan.serves));
  save_state();
}

void Launcher::stop(Child& child) {
  child.life.unwant();
  child.signalled = loop_.now();
  if (child.process.pid > 0) ::kill(child.process.pid, SIGTERM);
}

void Launcher::begin_stop() {
  options_.note("stopping");
  stopping_ = Stage::routers;
  for (Child& child : children_)
    if (child.plan.stage == *stopping_) stop(child);
}

void Launcher::go_on_stopping() {
  for (;;) {
    bool waits = false;
    for (Child& child : children_) {
      if (child.plan.stage != *stopping_ || child.process.pid <= 0) continue;
      waits = true;
      const Duration patience =
          grace + (*stopping_ == Stage::routers ? config_.router.drain_grace : Duration::zero());
      if (loop_.now() - child.signalled > patience) signal_group(child.process.pid, SIGKILL);
    }
    if (waits) return;
    if (*stopping_ == Stage::bus) break;
    stopping_ = static_cast<Stage>(static_cast<int>(*stopping_) - 1);
    for (Child& child : children_)
      if (child.plan.stage == *stopping_) stop(child);
  }
  loop_.stop();
}

void Launcher::tick() {
  if (stopping_)
    go_on_stopping();
  else
    end_hung(), start_due();
  for (Child& child : children_)  // a restart that was asked for and does not end
    if (!stopping_ && child.life.state() == ChildState::stopping &&
        loop_.now() - child.signalled > grace + config_.router.drain_grace)
      signal_group(child.process.pid, SIGKILL);
  if (!was_ready_ && !stopping_ && all_ready()) {
    was_ready_ = true;
    options_.note("ready");
    options_.on_ready();
  }
  if (options_.show && loop_.now() - shown_ >= show_every) {
    shown_ = loop_.now();
    options_.show(status());
  }
  arm();
}

void Launcher::arm() {
  Instant next = loop_.now() + (was_ready_ ? 500ms : 50ms);
  for (const Child& child : children_)
    if (child.life.due()) next = std::min(next, *child.life.due());
  due_ = std::max(next, loop_.now() + 1ms);
  tick_.arm(due_);
}

void Launcher::save_state() {
  cli::LauncherState state;
  state.fleet = config_.fleet;
  state.launcher = cli::process_now(::getpid()).value_or(cli::ProcessRef());
  state.port_base = config_.port_base;
  state.config = options_.fleet.file;
  for (const Child& child : children_)
    if (child.process.pid > 0) state.processes.push_back({child.plan.name, child.process});
  if (const Status saved = cli::write_state(config_.state_dir, state); !saved)
    options_.note(saved.error().text());
}

const schema::Beat* Launcher::beat_of(const Child& child) const {
  const auto beat = view_.beats.find(ProcessName(child.plan.name));
  if (beat == view_.beats.end() || child.process.pid <= 0 || beat->second.age(loop_.now()) > fresh_beat)
    return nullptr;
  // A beat from before the last start is another life's.
  if (beat->second.message.uptime > child.life.uptime(loop_.now()) + 1s) return nullptr;
  return &beat->second.message;
}

bool Launcher::is_ready(const Child& child) const {
  if (!child.plan.beats) {
    const auto* verdict = view_.verdict(EngineName(child.plan.name));
    return child.process.pid > 0 && verdict != nullptr && verdict->message.state == HealthState::ready;
  }
  const schema::Beat* beat = beat_of(child);
  if (beat == nullptr || !beat->ready) return false;
  // A router serves without a plan too, and at once by the one that its last life kept; but a fleet that has just been
  // started may have moved since, and is ready when this one's plan is in force.
  if (was_ready_ || child.plan.stage != Stage::routers) return true;
  const auto receipt = view_.receipts.find(ProcessName(child.plan.name));
  return receipt != view_.receipts.end() && receipt->second.message.reason == schema::ReceiptReason::accepted;
}

bool Launcher::all_ready() const {
  return std::all_of(children_.begin(), children_.end(),
                     [this](const Child& child) { return is_ready(child); });
}

std::vector<fleet_view::Table> Launcher::status() const {
  using fleet_view::cell;
  fleet_view::Table fleet{
      "fleet", {{"fleet"}, {"ready"}, {"launcher_pid"}, {"port_base"}, {"state_dir"}, {"config"}}, {}};
  fleet.rows.push_back({cell(config_.fleet), fleet_view::flag(all_ready()),
                        fleet_view::count(static_cast<std::uint64_t>(::getpid())),
                        fleet_view::count(config_.port_base), cell(config_.state_dir),
                        cell(options_.fleet.file)});
  fleet_view::Table table{"processes",
                          {{"process"},
                           {"role"},
                           {"pid"},
                           {"runs"},
                           {"ready"},
                           {"uptime_s"},
                           {"restarts"},
                           {"serves"},
                           {"last_end"},
                           {"says"}},
                          {}};
  for (const Child& child : children_) {
    const schema::Beat* beat = beat_of(child);
    table.rows.push_back(
        {cell(child.plan.name), cell(child.plan.role),
         child.process.pid > 0 ? fleet_view::count(static_cast<std::uint64_t>(child.process.pid))
                               : fleet_view::Cell(),
         cell(name_of(child.life.state())), fleet_view::flag(is_ready(child)),
         cell(to_seconds(child.life.uptime(loop_.now()))), fleet_view::count(child.life.restarts()),
         cell(child.plan.serves), cell(child.last_end), beat ? cell(beat->state) : fleet_view::Cell()});
  }
  std::vector<fleet_view::Table> out{std::move(fleet), std::move(table)};
  for (auto&& part :
       {fleet_view::show_engines(view_, loop_.now()), fleet_view::show_leader(view_, loop_.now()),
        fleet_view::show_routers(view_, loop_.now()), fleet_view::show_alerts(view_, loop_.now())})
    out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::string Launcher::answer(std::string_view question) {
  constexpr std::string_view restart = "restart ", stop_one = "stop ";
  if (question == "status") return fleet_view::as_text(status());
  if (question == "status json") return fleet_view::as_json(status());
  if (question.starts_with(restart)) return answer_restart(question.substr(restart.size()));
  if (question.starts_with(stop_one)) return answer_stop(question.substr(stop_one.size()));
  if (question == "stop") {
    if (!stopping_) begin_stop();
    tick_.arm(loop_.now());
    return "stopping\n";
  }
  return "error: status, status json, restart NAME, stop NAME or stop\n";
}

Result<Launcher::Child*> Launcher::child_called(std::string_view name) {
  if (stopping_) return fail(ErrorKind::conflict, "the fleet is being stopped");
  const auto child =
      std::find_if(children_.begin(), children_.end(), [&](const Child& c) { return c.plan.name == name; });
  if (child != children_.end()) return &*child;
  std::string names;
  for (const Child& c : children_) names += " " + c.plan.name;
  return fail(ErrorKind::not_found, fmt::format("no process is called '{}'; there are{}", name, names));
}

std::string Launcher::answer_restart(std::string_view name) {
  const auto child = child_called(name);
  if (!child) return fmt::format("error: {}\n", child.error().text());
  options_.note(fmt::format("{}: restart asked for", name));
  join_bus_with_new_keys();
  (*child)->life.restart(loop_.now());
  (*child)->signalled = loop_.now();
  if ((*child)->process.pid > 0) ::kill((*child)->process.pid, SIGTERM);
  tick_.arm(loop_.now());
  return "restarting\n";
}

std::string Launcher::answer_stop(std::string_view name) {
  const auto child = child_called(name);
  if (!child) return fmt::format("error: {}\n", child.error().text());
  options_.note(fmt::format("{}: stop asked for", name));
  stop(**child);
  tick_.arm(loop_.now());
  return "stopping\n";
}

}  // namespace signalbox::launcher
