#include "tools/observe/printer.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "messages/codec/codec.hpp"
#include "tools/cli/terminal.hpp"
#include "tools/fleet_view/message_text.hpp"
#include "tools/fleet_view/snapshot_diff.hpp"

namespace signalbox::observe {

Printer::Printer(TapStyle style, bool json_diffs)
    : style_(style), json_diffs_(json_diffs), width_(cli::terminal_width()) {}

void Printer::learn(const schema::Delivery& delivery, Instant now) {
  if (std::holds_alternative<schema::Policy>(delivery.message) ||
      std::holds_alternative<schema::FleetTable>(delivery.message))
    view_.on(delivery, now);
}

std::string Printer::render(const schema::Delivery& delivery) {
  std::string text = text_of(delivery);
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

bool Printer::write(std::string_view text) {
  ++shown_;
  return text.empty() ||
         (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0);
}

std::string Printer::text_of(const schema::Delivery& delivery) {
  switch (style_) {
    case TapStyle::lines: {
      std::string line = line_of(delivery, view_.names());
      if (width_ > 0 && line.size() > width_) line.resize(width_);
      return line;
    }
    case TapStyle::blocks: return block_of(delivery, view_.names()) + "\n";
    case TapStyle::json: return codec::to_json(delivery);
    case TapStyle::diffs:
      if (const auto* snapshot = std::get_if<schema::RoutingSnapshot>(&delivery.message))
        return diff_of(*snapshot);
      return {};
    case TapStyle::silent: return {};
  }
  return {};
}

std::string Printer::diff_of(const schema::RoutingSnapshot& snapshot) {
  const auto known = last_.find(snapshot.cluster);
  std::string out;
  if (known != last_.end() && known->second.version < snapshot.version) {
    const auto tables = difference(known->second, snapshot, view_.names());
    if (json_diffs_)
      out = fmt::format("{{\"cluster\": \"{}\", \"from\": \"{}\", \"to\": \"{}\", \"difference\": {}",
                        snapshot.cluster, known->second.version, snapshot.version, as_json(tables));
    else
      out = fmt::format("== {} {} -> {}\n", snapshot.cluster, known->second.version, snapshot.version);
    if (json_diffs_) {
      while (out.ends_with('\n')) out.pop_back();
      out += "}";
    } else {
      for (const auto& table : tables)
        if (!table.rows.empty()) out += fleet_view::as_text({table});
    }
  }
  if (known == last_.end() || known->second.version < snapshot.version)
    last_.insert_or_assign(snapshot.cluster, snapshot);
  return out;
}

}  // namespace signalbox::observe
