#include "messages/bus/stats.hpp"

namespace signalbox::bus {

SenderStats& SenderStats::operator+=(const SenderStats& other) {
  accepted += other.accepted;
  for (std::size_t i = 0; i < dropped.size(); ++i) dropped[i] += other.dropped[i];
  missed += other.missed;
  recovered += other.recovered;
  fingerprint_mismatches += other.fingerprint_mismatches;
  return *this;
}

namespace {
SenderStats sum(const std::map<std::string, SenderStats>& senders) {
  SenderStats out;
  for (const auto& [sender, stats] : senders) out += stats;
  return out;
}
}  // namespace

SenderStats ReceiverStats::total() const { return sum(senders); }
SenderStats ForwarderStats::total() const { return sum(senders); }

}  // namespace signalbox::bus
