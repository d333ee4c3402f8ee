#include "actors/health_monitor/machine/fleet_watch.hpp"

#include <fmt/format.h>

namespace signalbox::health_monitor {

namespace {

constexpr Duration leaderless_after = 5s;
/// This many changes of leadership within that time are too many.
constexpr std::size_t many_changes = 4;
constexpr Duration flapping_window = 60s;
/// How long a router may take for a snapshot that is in force.
constexpr Duration following = 5s;
constexpr Duration late_loop = 2s;
constexpr Duration gone_after = 10s;  ///< a process that does not beat is its launcher's matter, not ours
/// This many refusals within that time are no accident; the alert stands this long after the last.
constexpr std::uint64_t many_refused = 10;
constexpr Duration refused_window = 10s, refused_memory = 60s;

}  // namespace

void FleetWatch::hear(const schema::Delivery& delivery, Instant now) {
  if (began_ == never_yet) began_ = now;
  if (const auto* beat = std::get_if<schema::Beat>(&delivery.message)) return hear(*beat, now);
  const auto* alive = std::get_if<schema::KeepAlive>(&delivery.message);
  if (alive == nullptr || alive->version.term < term_) return;
  led_at_ = now;
  if (term_ < alive->version.term) {
    if (term_.counter > 0) changes_.push_back(now);
    term_ = alive->version.term;
  }
  if (versions_.empty() || versions_.back().first < alive->version)
    versions_.emplace_back(alive->version, now);
}

void FleetWatch::hear(const schema::Beat& beat, Instant now) {
  processes_[beat.id] = {beat, now};
  if (beat.role == Role::forwarder) count_refused(beat, now);
}

void FleetWatch::count_refused(const schema::Beat& beat, Instant now) {
  Refused& r = refused_[beat.id];
  const bool restarted = beat.messages_refused < r.before;
  if (r.since == never_yet || restarted) r = {beat.messages_refused, now, restarted ? r.rose_at : never_yet};
  if (beat.messages_refused - r.before >= many_refused) r = {beat.messages_refused, now, now};
  if (now - r.since > refused_window) r.before = beat.messages_refused, r.since = now;
}

void FleetWatch::forgive(Duration lateness) {
  for (auto& [id, process] : processes_) process.heard_at += lateness;
  for (auto& [version, since] : versions_) since += lateness;
  if (led_at_ != never_yet) led_at_ += lateness;
}

void FleetWatch::forget_old(Instant now) {
  std::erase_if(processes_, [&](const auto& p) { return now - p.second.heard_at > gone_after; });
  while (!changes_.empty() && now - changes_.front() > flapping_window) changes_.pop_front();
  // The newest of those that all should follow stays, as what routers are held against.
  while (versions_.size() > 1 && now - versions_[1].second >= following) versions_.pop_front();
}

std::string FleetWatch::leaderless(Instant now) const {
  if (began_ == never_yet) return {};
  const Duration since = now - std::max(led_at_, began_);
  return since < leaderless_after ? std::string()
                                  : fmt::format("nobody has led for {:.0f} s", to_seconds(since));
}

std::string FleetWatch::flapping() const {
  if (changes_.size() < many_changes) return {};
  return fmt::format("leadership changed {} times within {:.0f} s; term {} now", changes_.size(),
                     to_seconds(flapping_window), term_.counter);
}

std::string FleetWatch::diverged(Instant now) const {
  if (versions_.empty() || now - versions_.front().second < following) return {};
  const SnapshotVersion& least = versions_.front().first;
  std::string out;
  for (const auto& [id, process] : processes_)
    if (process.beat.role == Role::cluster_router && process.beat.snapshot < least)
      out += fmt::format("{}{} routes by {}", out.empty() ? "" : ", ", id, process.beat.snapshot);
  if (!out.empty()) out += fmt::format("; {} has been in force for {:.0f} s", least, to_seconds(following));
  return out.substr(0, 1000);
}

std::string FleetWatch::late_loops() const {
  std::string out;
  for (const auto& [id, process] : processes_)
    if (process.beat.loop_lag >= late_loop)
      out += fmt::format("{}{} is {:.0f} s late", out.empty() ? "" : ", ", id,
                         to_seconds(process.beat.loop_lag));
  return out.substr(0, 1000);
}

std::string FleetWatch::refused(Instant now) const {
  std::string out;
  for (const auto& [id, r] : refused_)
    if (r.rose_at != never_yet && now - r.rose_at <= refused_memory)
      out += (out.empty() ? "" : ", ") + id.str();
  return out.empty() ? out : out + " refused messages or keys within the last minute";
}

}  // namespace signalbox::health_monitor
