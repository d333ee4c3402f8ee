// Server-sent events, watched as they pass: the bytes are never changed, only read along.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace signalbox::http {

/// Cuts a stream of server-sent events into the payloads of its `data:` lines, at whatever boundaries its bytes arrive.
class SseReader {
 public:
  /// Reads on. `on_data(std::string_view)` gets each complete data line without its name; a line longer than `max_line_bytes` is passed
  /// over (and counted as an event).
  template <class OnData>
  void read(std::string_view bytes, OnData&& on_data);

  /// Data lines so far.
  std::uint64_t events() const { return events_; }
  /// The last line is complete and was empty (or nothing was read yet): an event may follow directly.
  bool at_boundary() const { return boundary_ && line_.empty() && !skipping_; }

  static constexpr std::size_t max_line_bytes = 256 * 1024;

 private:
  /// The payload of a data line, or nothing.
  static bool is_data(std::string_view line, std::string_view& payload);
  void hold(std::string_view part);

  std::string line_;  ///< an incomplete line
  std::uint64_t events_ = 0;
  bool boundary_ = true;
  bool skipping_ = false;  ///< the incomplete line is too long to hold
};

inline bool SseReader::is_data(std::string_view line, std::string_view& payload) {
  if (line.substr(0, 5) != "data:") return false;
  payload = line.substr(line.size() > 5 && line[5] == ' ' ? 6 : 5);
  return true;
}

inline void SseReader::hold(std::string_view part) {
  if (skipping_ || part.empty()) return;
  if (line_.size() + part.size() <= max_line_bytes) return void(line_.append(part));
  events_ += line_.substr(0, 5) == "data:" ? 1 : 0;
  line_ = {};
  skipping_ = true;
}

template <class OnData>
void SseReader::read(std::string_view bytes, OnData&& on_data) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return hold(bytes);
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    std::string held;
    if (!line_.empty()) {
      hold(line);
      held = std::exchange(line_, {});
      line = held;
    }
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    boundary_ = line.empty() && !skipping_;
    std::string_view payload;
    if (!std::exchange(skipping_, false) && is_data(line, payload)) ++events_, on_data(payload);
  }
}

}  // namespace signalbox::http
