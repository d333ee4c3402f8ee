#include "actors/cluster_router/net/server.hpp"

#include <fmt/chrono.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "actors/cluster_router/http/errors.hpp"
#include "actors/cluster_router/net/server_connection.hpp"

namespace signalbox::net {
namespace {

constexpr int accepts_per_turn = 64;
constexpr Duration accept_pause = 100ms;  // after the process ran out of descriptors
constexpr Duration date_period = 250ms;
constexpr int probe_ms = 50, arrival_ms = 5;
constexpr std::uint32_t probed_sockets = 16;  // of those that share a port

}  // namespace

ResponseWriter::~ResponseWriter() { abort(); }

void ResponseWriter::release_request() {
  if (connection_ != nullptr) connection_->release_request(*this);
  const int minor = request_.head.minor_version;
  request_ = {};
  request_.head.minor_version = minor;
}

void ResponseWriter::respond(int status, std::span<const http::Field> fields, std::string_view body) {
  if (connection_ == nullptr || begun_) return;
  begin(status, fields, body.size());
  write(body);
  finish();
}

void ResponseWriter::begin(int status, std::span<const http::Field> fields,
                           std::optional<std::uint64_t> length) {
  std::string lines;
  for (const http::Field& field : fields) ((lines += field.name) += ": ").append(field.value) += "\r\n";
  begin_with_lines(status, lines, length);
}

void ResponseWriter::begin_with_lines(int status, std::string_view field_lines,
                                      std::optional<std::uint64_t> length, bool dated) {
  if (connection_ == nullptr || begun_) return;
  begun_ = true;
  connection_->send_head(*this, status, field_lines, length, dated);
}

bool ResponseWriter::write(std::string_view bytes) {
  return connection_ == nullptr || connection_->send_body(*this, bytes);
}

void ResponseWriter::finish() {
  if (connection_ != nullptr) connection_->finish(*this);
}

void ResponseWriter::abort() {
  if (connection_ != nullptr) connection_->abort();
}

std::size_t ResponseWriter::waiting_bytes() const {
  return connection_ == nullptr ? 0 : connection_->waiting_bytes();
}

HttpServer::HttpServer(Loop& loop, HttpHandler& handler, ServerSettings settings)
    : loop_(loop),
      handler_(handler),
      settings_(settings),
      accept_again_(loop, [this] { resume_accepting(); }) {}

HttpServer::~HttpServer() {
  drain();
  while (!connections_.empty()) connections_.back()->close();
}

Status HttpServer::listen(const Address& address, bool share_port) {
  if (auto bound = bind(address, share_port); !bound) return bound;
  return open();
}

Status HttpServer::bind(const Address& address, bool share_port) {
  auto listener = bind_to(address, share_port);
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  if (const auto bound = local_address(listener_)) port_ = bound->port();
  return {};
}

Status HttpServer::open() {
  if (std::exchange(open_, true) || draining_ || !listener_.valid()) return {};
  if (auto listening = start_listening(listener_); !listening) return listening;
  resume_accepting();
  return {};
}

void HttpServer::resume_accepting() {
  if (accepting_ || !open_ || !listener_.valid()) return;
  if (full()) {
    // Where a connection of another loop ends, nobody tells this one.
    if (group_ != nullptr) accept_again_.arm_in(accept_pause);
    return;
  }
  accepting_ = true;
  loop_.watch_listener(listener_.get(), *this);
}

void HttpServer::pause_accepting(Duration longest) {
  if (accepting_) loop_.unwatch(listener_.get(), *this);
  accepting_ = false;
  accept_again_.arm_in(longest);
}

void HttpServer::on_ready(std::uint32_t) {
  for (int i = 0; i < accepts_per_turn && accepting_; ++i) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        pause_accepting(accept_pause);
      return;
    }
    accept(std::move(fd));
    if (full()) pause_accepting(accept_pause);
  }
}

bool HttpServer::full() const {
  return (group_ != nullptr ? group_->connections() : connections_.size()) >= settings_.max_connections;
}

/// While a successor takes over, what still comes is served here: the others of the group may have ended.
void HttpServer::accept(Fd fd) {
  if (group_ == nullptr) return take(std::move(fd));
  ServerGroup::Member& to = closing_ ? *member_ : group_->fewest();
  to.connections.fetch_add(1, std::memory_order_relaxed);
  if (&to == member_) return take(std::move(fd));
  to.loop.post([&server = to.server, passed = std::make_shared<Fd>(std::move(fd))] {
    server.take(std::move(*passed));
  });
}

void HttpServer::take(Fd fd) {
  ++counters_.accepted;
  auto stream = tls_ ? tls_->accept(std::move(fd)) : plain_stream(std::move(fd));
  auto connection = std::make_unique<ServerConnection>(*this, std::move(stream), tls_ != nullptr);
  connection->index = connections_.size();
  connections_.push_back(std::move(connection));
}

bool HttpServer::busy() const {
  return std::ranges::any_of(connections_, [](const auto& connection) { return connection->busy(); });
}

/// Connects to the own port and looks whether the connection arrives here. Closing a listener resets what waits in its queue, so
/// connections must go elsewhere before; and which number the other's socket has can only be tried.
bool HttpServer::takes_own_connection() {
  auto address = local_address(listener_);
  if (!address) return true;
  auto probe = start_connect(*address);
  if (!probe) return true;
  pollfd made{probe->get(), POLLOUT, 0};
  ::poll(&made, 1, probe_ms);
  const auto from = local_address(*probe);
  if (!from || connect_error(probe->get()) != 0) return true;
  for (bool waited = false;;) {
    Address peer;
    peer.size = sizeof peer.storage;
    Fd fd(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size,
                    SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid() && std::exchange(waited, true)) return false;
    if (!fd.valid()) {
      // The client's side of a handshake is done before the listener's.
      pollfd arrives{listener_.get(), POLLIN, 0};
      ::poll(&arrives, 1, arrival_ms);
      continue;
    }
    if (peer.text() == from->text()) return true;
    accept(std::move(fd));
  }
}

bool HttpServer::hand_over() {
  closing_ = true;
  if (!open_ || !listener_.valid()) return false;
  for (std::uint32_t index = 0; index < probed_sockets; ++index)
    if (steer_connections(listener_, index) && !takes_own_connection()) return true;
  return false;
}

/// "date: ...", with its CR LF; written anew when the last one is a part of a second old.
std::string_view HttpServer::date_line() {
  if (loop_.now() >= date_until_) {
    date_until_ = loop_.now() + date_period;
    date_line_ = fmt::format("date: {:%a, %d %b %Y %H:%M:%S} GMT\r\n", fmt::gmtime(std::time(nullptr)));
  }
  return date_line_;
}

void HttpServer::drain() {
  if (std::exchange(draining_, true)) return;
  closing_ = true;
  if (accepting_) loop_.unwatch(listener_.get(), *this);
  accepting_ = false;
  accept_again_.disarm();
  listener_.reset();
  for (std::size_t i = connections_.size(); i-- > 0;)
    if (i < connections_.size()) connections_[i]->close_when_idle();
}

void HttpServer::forget(ServerConnection& connection) {
  const std::size_t at = connection.index;
  std::unique_ptr<ServerConnection> ended = std::move(connections_[at]);
  if (at + 1 < connections_.size()) {
    connections_[at] = std::move(connections_.back());
    connections_[at]->index = at;
  }
  connections_.pop_back();
  if (member_ != nullptr) member_->connections.fetch_sub(1, std::memory_order_relaxed);
  loop_.dispose(std::move(ended));
  if (!draining_) resume_accepting();
}

void respond_error(ResponseWriter& writer, int status, std::string_view reason, std::string_view message) {
  const std::array fields{http::Field{"content-type", "application/json"},
                          http::Field{"x-signalbox-reason", reason}};
  writer.respond(status, fields, http::openai_error(status, reason, message));
}

}  // namespace signalbox::net
