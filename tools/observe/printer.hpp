// What a tap writes of the messages that pass its filter.
#pragma once

#include <map>
#include <optional>

#include "tools/fleet_view/view.hpp"
#include "tools/observe/filter.hpp"

namespace signalbox::observe {

enum class TapStyle : std::uint8_t {
  lines,   ///< a line each, cut at the terminal's width
  blocks,  ///< every field
  json,    ///< a line of JSON each
  diffs,   ///< of snapshots, what changed since the one before
  silent,  ///< nothing
};

class Printer {
 public:
  Printer(TapStyle style, bool json_diffs);
  /// Names of rows are learnt from these.
  void learn(const schema::Delivery& delivery, Instant now);
  fleet_view::RowNames names() const { return view_.names(); }
  /// A message as it is shown, with its line end; empty if there is nothing to show of it.
  std::string render(const schema::Delivery& delivery);
  /// False when nobody reads any more. May block.
  bool write(std::string_view text);
  std::uint64_t shown() const { return shown_; }

 private:
  std::string text_of(const schema::Delivery& delivery);
  std::string diff_of(const schema::RoutingSnapshot& snapshot);

  TapStyle style_;
  bool json_diffs_;
  std::size_t width_ = 0;  ///< 0: no terminal
  fleet_view::FleetView view_;
  std::map<ClusterName, schema::RoutingSnapshot> last_;
  std::uint64_t shown_ = 0;
};

}  // namespace signalbox::observe
