#include "messages/bus/forwarder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <atomic>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "messages/bus/authority.hpp"
#include "messages/bus/backlog.hpp"
#include "messages/bus/files.hpp"
#include "messages/bus/replay.hpp"
#include "messages/bus/sockets.hpp"

namespace signalbox::bus {

namespace {

constexpr std::size_t messages_per_turn = 256;
constexpr std::size_t replayed_per_turn = 64;
constexpr auto longest_turn = std::chrono::seconds(1);
constexpr std::size_t most_replays = 10'000;
constexpr std::size_t most_prefixes = 10'000;
constexpr std::size_t most_senders = 10'000;
/// Received and not yet looked at.
constexpr std::size_t most_unread = 65'536;
constexpr std::size_t most_unread_bytes = 64u << 20;
/// How soon a full queue, or a value held back, is tried again.
constexpr auto pause = std::chrono::milliseconds(2);
/// Latest values longer than this are thinned out to bulk_bytes_per_s.
constexpr std::size_t bulk_bytes = 32u << 10;
constexpr std::size_t most_subscription_bytes = max_topic_bytes;

/// Answers libzmq's question whether a key may connect (ZeroMQ RFC 27): members may, under their id.
class KeyChecker {
 public:
  KeyChecker(zmq::context_t& context, const Directory& directory)
      : directory_(directory), socket_(context, zmq::socket_type::rep) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.bind("inproc://zeromq.zap.01");
  }
  zmq::socket_t& socket() { return socket_; }

  /// Answers one question, if there is one; false if it refused a key.
  bool answer() {
    std::vector<std::string> question;
    zmq::message_t part;
    do {
      if (!socket_.recv(part, zmq::recv_flags::dontwait)) return true;
      question.push_back(part.to_string());
    } while (part.more());
    const Member* member = member_of(question);
    const std::string id = question.size() > 1 ? question[1] : "";
    const std::string reply[] = {"1.0",
                                 id,
                                 member != nullptr ? "200" : "400",
                                 member != nullptr ? "" : "no member has this key",
                                 member != nullptr ? member->identity.id.str() : "",
                                 ""};
    for (const std::string& each : reply)
      socket_.send(zmq::buffer(each), &each == &reply[5] ? zmq::send_flags::none : zmq::send_flags::sndmore);
    return member != nullptr;
  }

 private:
  /// Frames: version, request id, domain, address, routing id, mechanism, the client's public key.
  const Member* member_of(const std::vector<std::string>& question) const {
    if (question.size() != 7 || question[5] != "CURVE" || question[6].size() != 32) return nullptr;
    Key32 key;
    std::copy(question[6].begin(), question[6].end(), key.begin());
    return directory_.find_curve(key);
  }

  const Directory& directory_;
  zmq::socket_t socket_;
};

/// An ipc path that only this process binds: libzmq would silently take it from a running one.
Result<Descriptor> lock_path(std::string_view endpoint, const ProcessName& id) {
  if (!endpoint.starts_with("ipc://")) return Descriptor();
  const std::string path = std::string(endpoint.substr(6)) + ".lock";
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno("cannot be created", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorKind::conflict, fmt::format("forwarder '{}': another process serves this path", id),
                std::string(endpoint), "stop it, or give this one another path");
  return fd;
}

class ForwarderImpl final : public Forwarder {
 public:
  explicit ForwarderImpl(ForwarderOptions options)
      : options_(std::move(options)), values_(options_.cache_bytes, options_.cache_topics) {}
  ~ForwarderImpl() override { stop(); }

  Status open() {
    const bool secure = options_.keyring.has_value();
    for (std::string* endpoint : {&options_.endpoints.publish, &options_.endpoints.subscribe}) {
      if (auto status = check_endpoint(*endpoint, secure); !status) return status;
      auto lock = lock_path(*endpoint, options_.endpoints.id);
      if (!lock) return tl::unexpected(std::move(lock.error()));
      locks_.push_back(std::move(*lock));
    }
    if (secure) keys_.emplace(context_, options_.keyring->directory);
    const SocketSettings settings{options_.heartbeat, options_.heartbeat_timeout, {}};
    in_ = open_socket(context_, zmq::socket_type::xsub, settings);
    out_ = open_socket(context_, zmq::socket_type::xpub, settings);
    // A subscriber that comes back before its old connection is given up asks for the same again.
    out_.set(zmq::sockopt::xpub_verbose, true);
    if (auto status = bind(in_, options_.endpoints.publish); !status) return status;
    if (auto status = bind(out_, options_.endpoints.subscribe); !status) return status;
    in_.send(zmq::str_buffer("\x01"), zmq::send_flags::none);  // subscribe to everything
    thread_ = std::thread([this] { run(); });
    return {};
  }

  const ForwarderEndpoints& endpoints() const override { return options_.endpoints; }

  ForwarderStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void stop() override {
    stopping_ = true;
    wakeup_.wake();
    if (thread_.joinable()) thread_.join();
  }

 private:
  Status bind(zmq::socket_t& socket, std::string& endpoint) {
    if (options_.keyring) secure_as_server(socket, *options_.keyring);
    try {
      prepare_for(socket, endpoint);
      socket.bind(endpoint);
    } catch (const zmq::error_t& error) {
      return fail(error.num() == EADDRINUSE ? ErrorKind::conflict : ErrorKind::io,
                  fmt::format("forwarder '{}' cannot listen: {}", options_.endpoints.id, error.what()),
                  endpoint, "stop what listens there, or choose another address");
    }
    endpoint = socket.get(zmq::sockopt::last_endpoint);
    return {};
  }

  void run() {
    settle_thread("bus-forwarder");
    std::vector<zmq::pollitem_t> items{{nullptr, wakeup_.fd(), ZMQ_POLLIN, 0},
                                       {in_.handle(), 0, ZMQ_POLLIN, 0},
                                       {out_.handle(), 0, ZMQ_POLLIN, 0}};
    if (keys_) items.push_back({keys_->socket().handle(), 0, ZMQ_POLLIN, 0});
    while (!stopping_) {
      zmq::poll(items, poll_timeout());
      note_turn();
      if (items[0].revents != 0) wakeup_.clear();
      if (keys_ && items[3].revents != 0 && !keys_->answer()) count_refused_key();
      if (items[2].revents != 0) read_subscriptions();
      read_messages();
      step_replays();
      send_paced();
    }
    in_.close();
    out_.close();
    keys_.reset();  // while it is open, connections that it was asked about wait for it and stay
  }

  std::chrono::milliseconds poll_timeout() const {
    if (!unread_.empty()) return std::chrono::milliseconds(0);
    return replays_.empty() && paces_.empty() ? longest_turn : pause;
  }

  void note_turn() {
    const std::lock_guard lock(mutex_);
    stats_.last_turn = clock_now();
  }

  void read_messages() {
    const Instant now = clock_now();
    note_overrun(unread_.fill(in_));
    for (std::size_t i = 0; i < messages_per_turn && unread_.take(parts_); ++i) {
      auto refused = pass_on(now);
      const std::lock_guard lock(mutex_);
      if (refused) ++stats_of(refused->sender).dropped[static_cast<std::size_t>(refused->reason)];
      stats_.cached_topics = values_.topics(), stats_.cached_bytes = values_.bytes();
      stats_.cache_evicted = values_.evicted();
    }
  }

  void note_overrun(std::uint64_t count) {
    if (count == 0) return;
    const std::lock_guard lock(mutex_);
    stats_of({}).dropped[static_cast<std::size_t>(Drop::crowded)] += count;
  }

  /// Why the message in parts_ goes no further, or nothing.
  std::optional<Refusal> pass_on(Instant now) {
    const std::string user = parts_.user_id();
    if (parts_.overlong() || as_text(parts_.frames()[0]).starts_with('@'))
      return Refusal{Drop::malformed, user, {}};
    const Directory* directory = options_.keyring ? &options_.keyring->directory : nullptr;
    auto header = read_header(parts_.frames(), directory);
    if (!header) return directory != nullptr ? Refusal{header.error().reason, user, {}} : header.error();
    // The key that brought it is its source's: nobody speaks in another's name.
    if (directory != nullptr && user != header->envelope.source.str())
      return Refusal{Drop::not_author, user, {}};
    const std::string source = header->envelope.source.str();
    if (!values_.put(*header, parts_.frames(), now)) return Refusal{Drop::duplicate, source, {}};
    const bool goes_now = takes_its_turn(*header, parts_.frames()[2].size(), now);
    if (goes_now) parts_.forward(out_);
    const std::lock_guard lock(mutex_);
    ++(goes_now ? stats_.forwarded : stats_.thinned), ++stats_of(source).accepted;
    return std::nullopt;
  }

  // A stalled subscriber holds up what is sent until its missing pings give it away. Only bulk can be much in that
  // time, and of bulk that is kept only the newest value matters: so each such topic has a rate.
  bool takes_its_turn(const Header& header, std::size_t size, Instant now) {
    if (size <= bulk_bytes || header.info->keep == Duration::zero()) return true;
    const auto [at, is_first] =
        paces_.try_emplace(std::string(header.topic), Pace{now + time_for(size), false});
    at->second.due = !is_first;
    return is_first;
  }
  Duration time_for(std::size_t size) const {
    return from_seconds(static_cast<double>(size) / static_cast<double>(options_.bulk_bytes_per_s));
  }

  void send_paced() {
    const Instant now = clock_now();
    for (auto at = paces_.begin(); at != paces_.end();) {
      auto& [topic, pace] = *at;
      if (now < pace.free_at) {
        ++at;
        continue;
      }
      const LastValues::Value* value = pace.due ? values_.next(topic, "", now) : nullptr;
      if (value == nullptr) {
        at = paces_.erase(at);
        continue;
      }
      send_frames(out_, ValueFrames(*value, now).frames());
      pace = Pace{now + time_for(value->body.size()), false};
      ++at;
    }
  }

  SenderStats& stats_of(const std::string& sender) {
    const bool full = stats_.senders.size() >= most_senders && !stats_.senders.contains(sender);
    return stats_.senders[full ? std::string() : sender];
  }

  void read_subscriptions() {
    zmq::message_t message;
    for (std::size_t i = 0; i < messages_per_turn && out_.recv(message, zmq::recv_flags::dontwait); ++i) {
      std::string_view topic = message.to_string_view();
      if (topic.empty() || topic.size() > most_subscription_bytes) continue;
      const bool begins = topic.front() == '\x01';
      topic.remove_prefix(1);
      const std::string nonce(take_nonce(topic));
      if (nonce.empty()) {
        note_listener(topic, begins);
        continue;
      }
      replays_.remove_if([&](const Replay& replay) { return replay.is_for(nonce, topic); });
      if (begins && replays_.size() < most_replays) replays_.emplace_back(nonce, std::string(topic));
    }
  }

  /// An XPUB tells the end of a prefix when its last subscriber has left.
  void note_listener(std::string_view prefix, bool begins) {
    if (begins && prefixes_.size() < most_prefixes)
      prefixes_.emplace(prefix);
    else if (!begins)
      prefixes_.erase(std::string(prefix));
    std::vector<ProcessName> listened;
    for (const schema::MessageInfo& info : schema::catalog()) {
      const std::string_view root = schema::topic_root(info);
      const auto is_heard = [&](const std::string& p) { return root.starts_with(p) || p.starts_with(root); };
      if (info.keep == Duration::zero() && std::ranges::any_of(prefixes_, is_heard))
        listened.emplace_back(info.name);
    }
    std::ranges::sort(listened);
    const std::lock_guard lock(mutex_);
    stats_.listened = std::move(listened);
  }

  void step_replays() {
    const Instant now = clock_now();
    std::uint64_t sent = 0;
    for (auto replay = replays_.begin(); replay != replays_.end();)
      replay = replay->step(values_, out_, now, replayed_per_turn, sent) == Replay::State::done
                   ? replays_.erase(replay)
                   : std::next(replay);
    if (sent == 0) return;
    const std::lock_guard lock(mutex_);
    stats_.replayed += sent;
  }

  void count_refused_key() {
    const std::lock_guard lock(mutex_);
    ++stats_.keys_refused;
  }

  /// Of a topic with bulk: when it may be sent again, and whether a newer value waits for that.
  struct Pace {
    Instant free_at;
    bool due = false;
  };

  ForwarderOptions options_;
  std::vector<Descriptor> locks_;
  zmq::context_t context_;
  std::optional<KeyChecker> keys_;
  zmq::socket_t in_;
  zmq::socket_t out_;
  Backlog unread_{most_unread, most_unread_bytes};
  Parts parts_;
  LastValues values_;
  std::list<Replay> replays_;
  std::map<std::string, Pace> paces_;
  std::set<std::string> prefixes_;  ///< that somebody subscribes to
  Wakeup wakeup_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  ForwarderStats stats_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Forwarder>> Forwarder::start(ForwarderOptions options) {
  try {
    auto out = std::make_unique<ForwarderImpl>(std::move(options));
    if (auto status = out->open(); !status) return tl::unexpected(std::move(status.error()));
    return out;
  } catch (const zmq::error_t& error) {
    return fail(ErrorKind::io, fmt::format("the bus cannot be opened: {}", error.what()));
  }
}

}  // namespace signalbox::bus
