#include "messages/bus/sockets.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace signalbox::bus {

namespace {

// Hidden as a draft in the headers of libzmq 4.3.4, but at work in the library. Without it a server without a ZAP
// handler lets every key in.
constexpr int zap_enforce_domain = 93;
constexpr std::string_view zap_domain = "signalbox";

int to_ms(Duration d) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

// To be sent. Must not be lowered on a live socket: a writer that is over the new limit waits for a reader that has
// nothing left to read.
constexpr int queue_messages = 1000;
// The longest body of the catalog, with room.
constexpr std::int64_t longest_message = 16 << 20;

}  // namespace

Instant clock_now() { return instant_at(std::chrono::steady_clock::now().time_since_epoch()); }
Duration wall_now() { return std::chrono::system_clock::now().time_since_epoch(); }

zmq::socket_t open_socket(zmq::context_t& context, zmq::socket_type type, const SocketSettings& settings) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, to_ms(settings.linger));
  socket.set(zmq::sockopt::sndhwm, queue_messages);
  socket.set(zmq::sockopt::rcvhwm, 0);  // see backlog.hpp
  socket.set(zmq::sockopt::maxmsgsize, longest_message);
  socket.set(zmq::sockopt::heartbeat_ivl, to_ms(settings.heartbeat));
  socket.set(zmq::sockopt::heartbeat_timeout, to_ms(settings.heartbeat_timeout));
  socket.set(zmq::sockopt::heartbeat_ttl, to_ms(settings.heartbeat_timeout));
  // libzmq adds a random part of up to the first interval to each wait.
  socket.set(zmq::sockopt::reconnect_ivl, 100);
  socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
  socket.set(zmq::sockopt::connect_timeout, 1000);
  socket.set(zmq::sockopt::handshake_ivl, 5000);
  return socket;
}

void prepare_for(zmq::socket_t& socket, std::string_view endpoint) {
  const auto scheme = endpoint.find("://");
  const std::string_view address = scheme == std::string_view::npos ? endpoint : endpoint.substr(scheme + 3);
  // Only digits, dots and colons without a bracket: IPv4, which is left to itself.
  socket.set(zmq::sockopt::ipv6, address.find_first_not_of("0123456789.:") != std::string_view::npos);
}

void secure_as_server(zmq::socket_t& socket, const Keyring& keyring) {
  socket.set(zmq::sockopt::zap_domain, zap_domain);
  const int enforce = 1;
  if (zmq_setsockopt(socket.handle(), zap_enforce_domain, &enforce, sizeof enforce) != 0)
    throw zmq::error_t();
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, zmq::const_buffer(keyring.curve_secret.data(), 32));
}

void secure_as_client(zmq::socket_t& socket, const Keyring& keyring, const Key32& server_public) {
  socket.set(zmq::sockopt::curve_serverkey, zmq::const_buffer(server_public.data(), 32));
  socket.set(zmq::sockopt::curve_publickey, zmq::const_buffer(keyring.curve_public.data(), 32));
  socket.set(zmq::sockopt::curve_secretkey, zmq::const_buffer(keyring.curve_secret.data(), 32));
}

bool Parts::receive(zmq::socket_t& socket) {
  count_ = 0;
  zmq::message_t beyond;
  while (true) {
    zmq::message_t& part = count_ < most ? parts_[count_] : beyond;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return false;
    ++count_;
    if (!part.more()) return true;
  }
}

Frames Parts::frames() const {
  const std::size_t kept = std::min(count_, most);
  for (std::size_t i = 0; i < kept; ++i)
    views_[i] = {static_cast<const std::uint8_t*>(parts_[i].data()), parts_[i].size()};
  return {views_.data(), kept};
}

std::size_t Parts::bytes() const {
  std::size_t out = 0;
  for (std::size_t i = 0; i < std::min(count_, most); ++i) out += parts_[i].size();
  return out;
}

void Parts::forward(zmq::socket_t& socket) {
  for (std::size_t i = 0; i < count_; ++i) {
    const auto more = i + 1 < count_ ? zmq::send_flags::sndmore : zmq::send_flags::none;
    if (!socket.send(parts_[i], more | zmq::send_flags::dontwait)) return;
  }
}

std::string Parts::user_id() const {
  const char* id = zmq_msg_gets(const_cast<zmq_msg_t*>(parts_[0].handle()), "User-Id");
  return id == nullptr ? std::string() : std::string(id);
}

bool send_frames(zmq::socket_t& socket, Frames frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto more = i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    // A queue is full before the first part or not at all.
    if (!socket.send(zmq::const_buffer(frames[i].data(), frames[i].size()), more | zmq::send_flags::dontwait))
      return false;
  }
  return true;
}

void settle_thread(const char* name) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_setname_np(pthread_self(), name);
}

Wakeup::Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Wakeup::~Wakeup() { ::close(fd_); }

void Wakeup::wake() {
  const std::uint64_t one = 1;
  // It can only fail when it is full, and then it wakes anyway.
  if (::write(fd_, &one, sizeof one) < 0) return;
}
void Wakeup::clear() {
  std::uint64_t count = 0;
  if (::read(fd_, &count, sizeof count) < 0) return;
}

}  // namespace signalbox::bus
