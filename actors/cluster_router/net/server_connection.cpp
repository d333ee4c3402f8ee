#include "actors/cluster_router/net/server_connection.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "actors/cluster_router/http/errors.hpp"
#include "actors/cluster_router/http/line.hpp"

namespace signalbox::net {
namespace {

constexpr std::size_t json_padding_bytes = 64;
constexpr std::size_t trusted_length_bytes = 1u << 20;  // memory reserved on a client's word alone
constexpr Duration linger_timeout = 3s;

}  // namespace

ServerConnection::ServerConnection(HttpServer& server, std::unique_ptr<Stream> stream, bool opens)
    : server_(server),
      stream_(std::move(stream)),
      timer_(server.loop_, [this] { on_deadline(); }),
      phase_(opens ? Phase::opening : Phase::idle) {
  server_.loop_.watch(stream_->fd(), *this);
  timer_.arm_in(opens ? server_.settings_.handshake_timeout : server_.settings_.idle_timeout);
}

ServerConnection::~ServerConnection() {
  if (writer_) writer_->connection_ = nullptr;
  if (current_ != nullptr) current_->connection_ = nullptr;
}

void ServerConnection::on_ready(std::uint32_t events) {
  if (phase_ >= Phase::opening) return open(events);
  if (events & (EPOLLERR | EPOLLHUP)) return client_gone();
  if (events & EPOLLOUT) flush();
  if (events & (EPOLLIN | EPOLLRDHUP)) readable_ = true;
  if (events & EPOLLRDHUP) peer_ended_ = true;
  if (readable_ && wants_input()) read();
  if (peer_ended_ && phase_ == Phase::answering) client_gone();
}

void ServerConnection::open(std::uint32_t events) {
  if (phase_ == Phase::closed) return;
  if (events & EPOLLRDHUP) peer_ended_ = true;
  Opened outcome = events & (EPOLLERR | EPOLLHUP) ? Opened::failed : stream_->open();
  if (outcome == Opened::would_block && peer_ended_) outcome = stream_->open();  // an end has no second event
  switch (outcome) {
    case Opened::would_block: return;
    case Opened::ready: ++server_.counters_.handshakes; return opened();
    case Opened::in_the_clear:
      ++server_.counters_.in_the_clear;
      begin_request();
      return refuse(400, "plain_http", "this port speaks TLS: write https:// in the URL");
    case Opened::failed:
    case Opened::untrusted: ++server_.counters_.handshakes_failed; return close();
  }
}

/// The first request may have come with the end of the handshake: the kernel will not tell of it again.
void ServerConnection::opened() {
  phase_ = Phase::idle;
  timer_.arm_in(server_.settings_.idle_timeout);
  readable_ = true;
  read();
}

void ServerConnection::read() {
  const auto scratch = server_.loop_.scratch();
  for (int i = 0; readable_ && wants_input(); ++i) {
    if (i == Loop::reads_in_a_row) return server_.loop_.later([this] { read(); });
    const IoResult got = stream_->read(scratch);
    if (got.state == Io::would_block) readable_ = false;
    if (got.state == Io::ended || got.state == Io::failed) return close();
    // When more comes there will be a new event. An end that is already known must still be read.
    if (got.state == Io::done && !got.more && !peer_ended_) readable_ = false;
    if (got.state == Io::done) take({scratch.data(), got.bytes});
  }
}

void ServerConnection::take(std::string_view bytes) {
  if (phase_ == Phase::lingering) return;
  if (phase_ == Phase::idle) begin_request();
  make_room(bytes.size());
  writer_->bytes_.append(bytes);
  advance();
}

void ServerConnection::make_room(std::size_t more) {
  ResponseWriter& writer = *writer_;
  const http::RequestHead& head = writer.request_.head;
  const std::size_t size = writer.bytes_.size();
  const std::size_t needed = size + more + json_padding_bytes;
  if (writer.bytes_.capacity() >= needed) return;
  std::size_t wanted = std::max(needed, 2 * size);
  if (phase_ == Phase::body && head.framing == http::Framing::length) {
    const std::size_t whole = head_bytes_ + static_cast<std::size_t>(head.length) + json_padding_bytes;
    wanted = std::max(needed, std::min(whole, std::max(2 * size, trusted_length_bytes)));
  }
  const char* before = writer.bytes_.data();
  writer.bytes_.reserve(wanted);
  if (phase_ == Phase::body) http::rebase(writer.request_.head, before, writer.bytes_.data());
}

void ServerConnection::begin_request() {
  writer_ = std::make_shared<ResponseWriter>(*this);
  writer_->bytes_ = server_.loop_.take_buffer();
  head_bytes_ = head_seen_ = body_read_ = 0;
  chunks_ = {};
  phase_ = Phase::head;
  timer_.arm_in(server_.settings_.head_timeout);
}

void ServerConnection::advance() {
  if (phase_ == Phase::head) read_head();
  if (phase_ == Phase::body) read_body();
}

void ServerConnection::read_head() {
  ResponseWriter& writer = *writer_;
  const auto parsed =
      http::parse_request(writer.bytes_, head_seen_, server_.settings_.head, writer.request_.head);
  head_seen_ = writer.bytes_.size();
  if (parsed.fault != http::Fault::none) return refuse(parsed.fault);
  if (parsed.consumed == 0) return;
  head_bytes_ = parsed.consumed;
  begin_body();
}

void ServerConnection::begin_body() {
  const http::RequestHead& head = writer_->request_.head;
  phase_ = Phase::body;
  close_after_ = !head.keep_alive || server_.closing_;
  if (head.framing == http::Framing::length && head.length > server_.settings_.max_body_bytes)
    return refuse(http::Fault::body_too_large);
  if (head.framing == http::Framing::none) return;
  body_began_ = server_.loop_.now();
  wait_for_body(0);
  if (head.expects_continue && writer_->bytes_.size() == head_bytes_) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    queue_flush();
  }
}

/// A pause ends the request, and so does a trickle.
void ServerConnection::wait_for_body(std::size_t so_far) {
  const ServerSettings& settings = server_.settings_;
  const auto earned = std::chrono::milliseconds(so_far * 1000 / settings.body_bytes_per_s);
  timer_.arm(std::min(server_.loop_.now(), body_began_ + earned) + settings.body_timeout);
}

void ServerConnection::read_body() {
  ResponseWriter& writer = *writer_;
  const http::RequestHead& head = writer.request_.head;
  if (head.framing == http::Framing::chunked) return read_chunks();
  const std::size_t whole = head_bytes_ + static_cast<std::size_t>(head.length);
  if (writer.bytes_.size() < whole) return wait_for_body(writer.bytes_.size() - head_bytes_);
  pipelined_.assign(writer.bytes_, whole);
  writer.bytes_.resize(whole);
  hand_over();
}

void ServerConnection::read_chunks() {
  ResponseWriter& writer = *writer_;
  for (;;) {
    const auto step = chunks_.next(std::string_view(writer.bytes_).substr(head_bytes_ + body_read_));
    body_read_ += step.consumed;
    writer.chunks_.append(step.data);
    if (step.state == http::ChunkedDecoder::State::failed) return refuse(http::Fault::bad_chunk);
    if (writer.chunks_.size() > server_.settings_.max_body_bytes) return refuse(http::Fault::body_too_large);
    if (step.state == http::ChunkedDecoder::State::ended) break;
    if (step.consumed == 0) {
      writer.bytes_.resize(head_bytes_);
      body_read_ = 0;
      return wait_for_body(writer.chunks_.size());
    }
  }
  pipelined_.assign(writer.bytes_, head_bytes_ + body_read_);
  writer.bytes_.resize(head_bytes_);
  hand_over();
}

void ServerConnection::hand_over() {
  const ResponseWriterPtr writer = begin_answer();
  if (writer->request_.head.framing == http::Framing::chunked) {
    writer->chunks_.reserve(writer->chunks_.size() + json_padding_bytes);
    writer->request_.body = writer->chunks_;
  } else {
    writer->request_.body = std::string_view(writer->bytes_).substr(head_bytes_);
  }
  server_.handler_.on_request(writer);
}

ResponseWriterPtr ServerConnection::begin_answer() {
  current_ = writer_.get();
  phase_ = Phase::answering;
  timer_.disarm();
  return std::move(writer_);
}

void ServerConnection::refuse(http::Fault fault) {
  const http::FaultText text = http::describe(fault);
  std::string message(text.sentence);
  if (fault == http::Fault::body_too_large)
    message += fmt::format(" of {} bytes", server_.settings_.max_body_bytes);
  if (fault == http::Fault::head_too_large)
    message += fmt::format(" of {} bytes", server_.settings_.head.max_bytes);
  if (fault == http::Fault::too_many_fields)
    message += fmt::format(" of {}", server_.settings_.head.max_fields);
  refuse(text.status, text.name, message);
}

void ServerConnection::refuse(int status, std::string_view reason, std::string_view message) {
  server_.handler_.on_refused(status, reason);
  close_after_ = true;
  respond_error(*begin_answer(), status, reason, message);
}

void ServerConnection::send_head(ResponseWriter& writer, int status, std::string_view field_lines,
                                 std::optional<std::uint64_t> length, bool dated) {
  using Body = ResponseWriter::Body;
  const http::RequestHead& head = writer.request_.head;
  if (out_.empty() && out_.capacity() < 512) out_ = server_.loop_.take_buffer();
  const bool bodiless = status == 204 || status == 304;
  writer.framing_ = head.method == "HEAD" || bodiless   ? Body::none
                    : length || head.minor_version == 0 ? Body::plain
                                                        : Body::chunked;
  if (!length && !bodiless && head.minor_version == 0) close_after_ = true;
  if (server_.closing_) close_after_ = true;
  out_ += "HTTP/1.1 ";
  http::append_number(out_, static_cast<unsigned>(status));
  out_.append(" ").append(http::reason_phrase(status)).append("\r\n").append(field_lines);
  out_ += writer.added_lines_;
  if (!dated) out_ += server_.date_line();
  if (length && !bodiless)
    http::append_line(out_, "content-length", *length);
  else if (!bodiless && head.minor_version == 1)
    out_ += "transfer-encoding: chunked\r\n";
  if (close_after_)
    out_ += "connection: close\r\n";
  else if (head.minor_version == 0)
    out_ += "connection: keep-alive\r\n";
  out_ += "\r\n";
  queue_flush();
}

bool ServerConnection::send_body(ResponseWriter& writer, std::string_view bytes) {
  if (bytes.empty() || writer.framing_ == ResponseWriter::Body::none) return true;
  if (out_.empty() && out_.capacity() < 512) out_ = server_.loop_.take_buffer();
  if (writer.framing_ == ResponseWriter::Body::chunked) {
    std::array<char, 20> line;
    out_.append(line.data(), http::write_chunk_head(bytes.size(), line))
        .append(bytes)
        .append(http::chunk_tail);
  } else {
    out_.append(bytes);
  }
  queue_flush();
  paused_writer_ = waiting_bytes() > server_.settings_.high_water_bytes;
  return !paused_writer_;
}

void ServerConnection::finish(ResponseWriter& writer) {
  if (writer.framing_ == ResponseWriter::Body::chunked) out_.append(http::last_chunk);
  phase_ = Phase::flushing;
  part_from(writer);
  queue_flush();
}

void ServerConnection::part_from(ResponseWriter& writer) {
  release_request(writer);
  writer.connection_ = nullptr;
  current_ = nullptr;
}

void ServerConnection::abort() {
  paused_writer_ = flush_queued_ = false;
  flush();
  if (phase_ == Phase::closed) return;
  stream_->make_close_a_reset();
  close();
}

void ServerConnection::release_request(ResponseWriter& writer) {
  server_.loop_.give_buffer(std::move(writer.bytes_));
  server_.loop_.give_buffer(std::move(writer.chunks_));
}

void ServerConnection::queue_flush() {
  if (std::exchange(flush_queued_, true)) return;
  server_.loop_.later([this] {
    flush_queued_ = false;
    flush();
  });
}

void ServerConnection::flush() {
  if (phase_ == Phase::closed || flush_queued_) return;
  while (waiting_bytes() > 0) {
    const IoResult put = stream_->write(std::string_view(out_).substr(sent_));
    if (put.state == Io::failed) return client_gone();
    if (put.state == Io::would_block) return timer_.arm_in(server_.settings_.stall_timeout);
    sent_ += put.bytes;
    if (waiting_bytes() > 0) timer_.arm_in(server_.settings_.stall_timeout);
  }
  flushed();
}

void ServerConnection::flushed() {
  if (sent_ > 0) server_.loop_.give_buffer(std::move(out_));
  out_.clear();
  sent_ = 0;
  if (phase_ == Phase::answering) timer_.disarm();
  if (phase_ == Phase::flushing) return next_request();
  if (std::exchange(paused_writer_, false) && current_ != nullptr && current_->observer_ != nullptr)
    current_->observer_->on_writable();
}

void ServerConnection::next_request() {
  if (close_after_) return peer_ended_ ? close() : linger();
  phase_ = Phase::idle;
  timer_.arm_in(server_.settings_.idle_timeout);
  if (!pipelined_.empty()) take(std::exchange(pipelined_, {}));
  if (readable_ && wants_input()) read();
}

void ServerConnection::linger() {
  // Closing with unread bytes would reset the connection and could destroy the answer on its way.
  phase_ = Phase::lingering;
  stream_->end_writing();
  timer_.arm_in(linger_timeout);
  if (readable_) read();
}

void ServerConnection::client_gone() {
  ResponseObserver* observer = current_ == nullptr ? nullptr : current_->observer_;
  close();
  if (observer != nullptr) observer->on_client_gone();
}

void ServerConnection::on_deadline() {
  switch (phase_) {
    case Phase::head: return refuse(408, "head_timeout", "the request's head did not arrive in time");
    case Phase::body: return refuse(408, "body_timeout", "the request's body did not arrive in time");
    case Phase::answering:
    case Phase::flushing: return client_gone();
    case Phase::opening: ++server_.counters_.handshakes_failed; return close();
    case Phase::idle:
    case Phase::lingering: return close();
    case Phase::closed: return;
  }
}

void ServerConnection::close_when_idle() {
  close_after_ = true;
  if (phase_ == Phase::idle || phase_ == Phase::opening) close();
}

void ServerConnection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  timer_.disarm();
  writer_.reset();
  if (current_ != nullptr) current_->connection_ = nullptr;
  current_ = nullptr;
  server_.loop_.unwatch(stream_->fd(), *this);
  stream_.reset();
  server_.forget(*this);
}

}  // namespace signalbox::net
