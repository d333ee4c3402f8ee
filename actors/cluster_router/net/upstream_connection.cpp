#include "actors/cluster_router/net/upstream_connection.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

namespace signalbox::net {
namespace {
constexpr std::uint8_t max_interim_answers = 32;
}  // namespace

UpstreamConnection::UpstreamConnection(Upstream& upstream, std::unique_ptr<Stream> stream)
    : upstream_(upstream), stream_(std::move(stream)) {
  upstream_.loop_.watch(stream_->fd(), *this);
}

UpstreamConnection::~UpstreamConnection() { close(); }

void UpstreamConnection::carry(Call& call, bool fresh) {
  call_ = &call;
  reused_ = !fresh;
  sent_ = interim_ = 0;
  wanted_ = call.head_.size() + call.body_.size();
  paused_ = false;
  if (fresh) return call.wait(CallFault::connect_timeout, call.limits_.connect);
  connected();
}

void UpstreamConnection::connected() {
  phase_ = Phase::head;
  call_->wait(CallFault::first_byte_timeout, call_->limits_.first_byte);
  // With the turn's other requests, one right after the other: a server that sleeps is then woken once for all of them.
  upstream_.loop_.later([this] { send(); });
}

/// Goes on with what has to pass before the first byte; true once that is done.
bool UpstreamConnection::open() {
  Opened opened = stream_->open();
  if (opened == Opened::would_block && hung_up_) opened = stream_->open();  // an end has no second event
  if (opened == Opened::ready) {
    readable_ =
        upstream_.settings_.tls != nullptr;  // what came with a handshake's end has no event of its own
    connected();
    return true;
  }
  if (opened == Opened::would_block) {
    if (call_->due_ == CallFault::connect_timeout) call_->due_ = CallFault::handshake_failed;
    return false;
  }
  upstream_.problem_ = stream_->problem();
  call_->fail(opened == Opened::untrusted ? CallFault::untrusted : CallFault::handshake_failed);
  return false;
}

void UpstreamConnection::on_ready(std::uint32_t events) {
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::idle) {
    if (events & ~static_cast<std::uint32_t>(EPOLLOUT)) upstream_.drop_idle(*this);
    return;
  }
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = true;
  if (phase_ == Phase::connecting) {
    if (connect_error(stream_->fd()) != 0) return call_->fail(CallFault::connect_failed);
    if ((events & EPOLLOUT) == 0) return;
    phase_ = Phase::opening;
    if (!open()) return;
  } else if (phase_ == Phase::opening) {
    if (!open()) return;
  } else if (events & EPOLLOUT) {
    send();
  }
  if (events & ~static_cast<std::uint32_t>(EPOLLOUT)) readable_ = true;
  read();
}

void UpstreamConnection::send() {
  while (call_ != nullptr && sent_ < wanted_) {
    const std::string_view head = call_->head_;
    const IoResult put = sent_ < head.size() ? stream_->write(head.substr(sent_), call_->body_)
                                             : stream_->write(call_->body_.substr(sent_ - head.size()));
    // A failure is not told here: the loop will tell of the hang-up, and an early answer may still be there to read.
    if (put.state != Io::done) return;
    sent_ += put.bytes;
  }
}

void UpstreamConnection::set_paused(bool paused) {
  if (paused_ == paused) return;
  paused_ = paused;
  if (!paused) upstream_.loop_.later([this] { read(); });
}

void UpstreamConnection::read() {
  const auto scratch = upstream_.loop_.scratch();
  for (int i = 0; readable_ && !paused_ && (phase_ == Phase::head || phase_ == Phase::body); ++i) {
    if (i == Loop::reads_in_a_row) return upstream_.loop_.later([this] { read(); });
    const IoResult got = stream_->read(scratch);
    if (got.state == Io::would_block) readable_ = false;
    if (got.state == Io::ended || got.state == Io::failed) return peer_ended(got.state == Io::ended);
    // More will come with an event of its own, unless that was the last.
    if (got.state == Io::done && !got.more && !hung_up_) readable_ = false;
    if (got.state == Io::done) take({scratch.data(), got.bytes});
  }
}

void UpstreamConnection::take(std::string_view bytes) {
  phase_ == Phase::head ? take_head(bytes) : take_body(bytes);
}

void UpstreamConnection::take_head(std::string_view bytes) {
  std::string held = std::exchange(partial_head_, {});
  std::size_t seen = held.size();
  if (seen > 0) bytes = held.append(bytes);
  while (!bytes.empty()) {
    const auto parsed = http::parse_response(bytes, seen, upstream_.settings_.head, call_->bodiless_, head_);
    if (parsed.fault != http::Fault::none) return call_->fail(CallFault::bad_answer);
    if (parsed.consumed == 0) return void(partial_head_ = bytes);
    if (head_.status == 101) return call_->fail(CallFault::bad_answer);
    bytes.remove_prefix(parsed.consumed);
    if (head_.status >= 200) return begin_body(bytes);
    // An interim answer (100, 103): the real one follows. None is passed on, since the next attempt may be another engine's.
    if (++interim_ > max_interim_answers) return call_->fail(CallFault::bad_answer);
    seen = 0;
  }
}

void UpstreamConnection::begin_body(std::string_view rest) {
  phase_ = Phase::body;
  chunks_ = {};
  left_ = head_.length;
  if (sent()) call_->head_ = {};
  call_->observer_->on_answer(head_);
  head_.fields.clear();
  if (call_ == nullptr) return;
  if (head_.framing == http::Framing::none || (head_.framing == http::Framing::length && left_ == 0))
    return complete(rest.empty());
  if (!rest.empty()) take_body(rest);
}

/// False when the observer ended the call.
bool UpstreamConnection::tell_body(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (!paused_) call_->wait(CallFault::gap_timeout, call_->limits_.gap);
  call_->observer_->on_body(bytes);
  return call_ != nullptr;
}

void UpstreamConnection::take_body(std::string_view bytes) {
  if (head_.framing == http::Framing::until_close) return void(tell_body(bytes));
  if (head_.framing == http::Framing::length) {
    const std::string_view piece =
        bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
    left_ -= piece.size();
    if (tell_body(piece) && left_ == 0) complete(piece.size() == bytes.size());
    return;
  }
  take_chunks(bytes);
}

/// What arrived together is told together, however many chunks it came in: a fast stream's events are many in each read.
void UpstreamConnection::take_chunks(std::string_view bytes) {
  Loop& loop = upstream_.loop_;  // whoever is told may let go of the upstream
  auto step = chunks_.next(bytes);
  bytes.remove_prefix(step.consumed);
  std::string_view data = step.data;
  std::string gathered;
  while (step.state == http::ChunkedDecoder::State::more && !bytes.empty()) {
    step = chunks_.next(bytes);
    bytes.remove_prefix(step.consumed);
    if (step.data.empty()) continue;
    if (!data.empty() && gathered.empty()) (gathered = loop.take_buffer()).append(data);
    data = gathered.empty() ? step.data : std::string_view(gathered.append(step.data));
  }
  const bool goes_on = tell_body(data);
  loop.give_buffer(std::move(gathered));
  if (!goes_on) return;
  if (step.state == http::ChunkedDecoder::State::failed) return call_->fail(CallFault::bad_answer);
  if (step.state == http::ChunkedDecoder::State::ended) complete(bytes.empty());
}

void UpstreamConnection::peer_ended(bool orderly) {
  if (phase_ == Phase::body && head_.framing == http::Framing::until_close && orderly) return complete(false);
  if (phase_ == Phase::body) return call_->fail(CallFault::truncated);
  if (reused_ && partial_head_.empty()) return call_->restart();
  call_->fail(CallFault::reset_before_answer);
}

void UpstreamConnection::complete(bool clean) {
  Call& call = *std::exchange(call_, nullptr);
  call.timer_.disarm();
  // Without a short read there may be more in the socket, which the next call would take for its answer.
  const bool drained = clean && !readable_ && !hung_up_;
  const bool reusable = drained && head_.keep_alive && head_.framing != http::Framing::until_close && sent();
  if (reusable)
    upstream_.keep(std::move(call.connection_));
  else
    end(std::move(call.connection_));
  call.observer_->on_end();
}

void UpstreamConnection::end(std::unique_ptr<UpstreamConnection> connection) {
  if (!connection) return;
  connection->call_ = nullptr;
  connection->close();
  Loop& loop = connection->upstream_.loop_;
  loop.dispose(std::move(connection));
}

void UpstreamConnection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  upstream_.loop_.unwatch(stream_->fd(), *this);
  stream_.reset();
}

}  // namespace signalbox::net
