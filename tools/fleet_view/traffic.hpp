// What is said on the bus, counted: how much by whom, and what did not arrive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "messages/schema/catalog.hpp"
#include "tools/fleet_view/table.hpp"

namespace signalbox::fleet_view {

class Traffic {
 public:
  explicit Traffic(Instant began) : began_(began) {}

  /// A message that was accepted; `bytes`: all its frames.
  void on(const schema::Delivery& delivery, std::size_t bytes);
  /// A message that was refused on receipt.
  void refused(const std::string& sender) { ++refused_[sender]; }

  /// Messages that their topics' numbers jumped over and that have not come since.
  std::uint64_t lost() const;
  std::uint64_t messages() const;

  /// By sender and kind: messages, rates, what was lost, the greatest age; and the total.
  std::vector<Table> tables(Instant now) const;

 private:
  struct Row {
    std::uint64_t messages = 0, bytes = 0, gaps = 0, late = 0;
    Duration oldest{};
  };
  struct Sequence {
    Incarnation incarnation;
    std::uint64_t highest = 0;
  };

  Instant began_;
  std::map<std::pair<std::string, std::string_view>, Row> rows_;  ///< by sender and message
  std::map<std::string, Sequence, std::less<>> sequences_;        ///< by sender and topic
  std::map<std::string, std::uint64_t> refused_;
};

}  // namespace signalbox::fleet_view
