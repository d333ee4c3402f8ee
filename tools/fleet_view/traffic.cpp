#include "tools/fleet_view/traffic.hpp"

#include <algorithm>

namespace signalbox::fleet_view {

void Traffic::on(const schema::Delivery& delivery, std::size_t bytes) {
  const schema::Envelope& envelope = delivery.envelope;
  Row& row = rows_[{envelope.source.str(), schema::info_of(delivery.message).name}];
  ++row.messages;
  row.bytes += bytes;
  row.oldest = std::max(row.oldest, delivery.age);

  const std::string key = envelope.source.str() + " " + delivery.topic;
  const auto [at, is_new] = sequences_.try_emplace(key, Sequence{envelope.incarnation, envelope.sequence});
  Sequence& known = at->second;
  if (is_new) return;  // what was said before we listened is not lost
  if (known.incarnation != envelope.incarnation) {
    known = {envelope.incarnation, envelope.sequence};
  } else if (envelope.sequence > known.highest) {
    row.gaps += envelope.sequence - known.highest - 1;
    known.highest = envelope.sequence;
  } else {
    ++row.late;
  }
}

std::uint64_t Traffic::lost() const {
  std::uint64_t out = 0;
  for (const auto& [key, row] : rows_) out += row.gaps - std::min(row.gaps, row.late);
  return out;
}

std::uint64_t Traffic::messages() const {
  std::uint64_t out = 0;
  for (const auto& [key, row] : rows_) out += row.messages;
  return out;
}

std::vector<Table> Traffic::tables(Instant now) const {
  Table senders{"traffic",
                {{"sender"},
                 {"message"},
                 {"messages"},
                 {"per_s", 1},
                 {"kib_per_s", 1},
                 {"lost"},
                 {"late"},
                 {"oldest_ms", 1}},
                {}};
  const double seconds = std::max(1e-9, to_seconds(now - began_));
  Row total;
  const auto add = [&](Cell sender, Cell message, const Row& row) {
    senders.rows.push_back({std::move(sender), std::move(message), count(row.messages),
                            cell(static_cast<double>(row.messages) / seconds),
                            cell(static_cast<double>(row.bytes) / 1024 / seconds),
                            count(row.gaps - std::min(row.gaps, row.late)), count(row.late),
                            cell(to_seconds(row.oldest) * 1e3)});
  };
  for (const auto& [key, row] : rows_) {
    add(key.first, cell(key.second), row);
    total.messages += row.messages, total.bytes += row.bytes, total.gaps += row.gaps, total.late += row.late;
    total.oldest = std::max(total.oldest, row.oldest);
  }
  add(cell("all"), Cell(), total);
  Table refusals{"refused", {{"sender"}, {"messages"}}, {}};
  for (const auto& [sender, times] : refused_)
    refusals.rows.push_back({cell(sender.empty() ? "unknown" : sender), count(times)});
  return {senders, refusals};
}

}  // namespace signalbox::fleet_view
