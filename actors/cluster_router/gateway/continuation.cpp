#include "actors/cluster_router/gateway/continuation.hpp"

#include <algorithm>

namespace signalbox::gateway {
namespace {

/// Where the last whole event of these bytes ends; 0 if none does.
std::size_t end_of_events(std::string_view bytes) {
  const std::size_t lf = bytes.rfind("\n\n"), crlf = bytes.rfind("\r\n\r\n");
  return std::max(lf == std::string_view::npos ? 0 : lf + 2, crlf == std::string_view::npos ? 0 : crlf + 4);
}

}  // namespace

Continuation::Continuation(ContinuationMemory& memory, http::Endpoint endpoint, std::size_t request_bytes)
    : memory_(memory), endpoint_(endpoint) {
  if (!reserve(request_bytes + sizeof(Continuation))) give_up();
}

Continuation::~Continuation() { memory_.used -= reserved_; }

bool Continuation::reserve(std::size_t bytes) {
  if (memory_.used + bytes > memory_.limit) return false;
  memory_.used += bytes;
  reserved_ += bytes;
  return true;
}

void Continuation::give_up() {
  possible_ = false;
  text_ = {};
}

std::string_view Continuation::take(std::string_view bytes) {
  // Once it can no longer be continued bytes pass as they come; those of a second engine still have to be fitted in.
  if (!possible_ && !started_) {
    if (tail_.empty()) return bytes;
    out_ = std::move(tail_).append(bytes);
    tail_ = {};
    return out_;
  }
  const std::size_t end = end_of_events(bytes);
  std::string_view whole = bytes.substr(0, end);
  if (!tail_.empty() && end > 0) {
    out_ = std::move(tail_).append(whole);
    whole = out_;
    tail_ = {};
  }
  tail_.append(bytes.substr(end));
  // A boundary may lie across two pieces.
  if (end == 0)
    if (const std::size_t late = end_of_events(tail_); late > 0) {
      out_ = tail_.substr(0, late);
      tail_.erase(0, late);
      whole = out_;
    }
  if (tail_.size() > most_text_bytes) give_up();
  if (whole.empty()) return {};
  if (started_) return continued(whole);
  reader_.read(whole, [this](std::string_view data) { read(data); });
  return whole;
}

/// Counts one event of any engine.
void Continuation::read(std::string_view data) {
  if (!possible_) return;
  const http::StreamPiece piece = http::read_piece(data, endpoint_);
  if (!identified_ && !started_) {
    identity_ = http::identity_of(data);
    identified_ = true;
  }
  if (!piece.readable || piece.ends) return give_up();
  if (piece.text.empty()) return;
  ++tokens_;
  if (text_.size() + piece.text.size() > most_text_bytes || !reserve(piece.text.size())) return give_up();
  text_ += piece.text;
}

Result<std::string> Continuation::request_for_rest(std::string_view body) const {
  if (memory_.used + body.size() + text_.size() > memory_.limit)
    return fail(ErrorKind::unavailable, "there is no memory to continue it");
  if (text_.empty()) return std::string(body);
  return http::request_for_rest(body, endpoint_, text_, tokens_);
}

void Continuation::start(std::string request) {
  memory_.used += request.size();
  reserved_ += request.size();
  body_ = std::move(request);
  given_ = tokens_;
  started_ = true;
  tail_ = {};
}

std::string_view Continuation::continued(std::string_view events) {
  std::string out;
  while (!events.empty()) {
    const std::size_t end = events.find('\n');
    std::string_view line = events.substr(0, end);
    events.remove_prefix(end == std::string_view::npos ? events.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    std::string data;
    if (line.starts_with("data:")) {
      std::string_view payload = line.substr(line.starts_with("data: ") ? 6 : 5);
      read(payload);
      data = http::as_continued(payload, endpoint_, identity_, given_);
      if (data.empty()) {  // with the empty line behind it
        if (const std::size_t next = events.find('\n'); next != std::string_view::npos && next <= 1)
          events.remove_prefix(next + 1);
        continue;
      }
      out += "data: " + data + "\n";
    } else {
      out.append(line).push_back('\n');
    }
  }
  out_ = std::move(out);
  return out_;
}

}  // namespace signalbox::gateway
