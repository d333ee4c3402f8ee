#include "messages/bus/node.hpp"

#include <sodium.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "messages/bus/authority.hpp"
#include "messages/bus/backlog.hpp"
#include "messages/bus/outbox.hpp"
#include "messages/bus/proof.hpp"
#include "messages/bus/receiver.hpp"
#include "messages/bus/replay.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::bus {

namespace {

constexpr std::size_t messages_per_turn = 256;
/// How soon a forwarder with a full queue is tried again.
constexpr auto retry_pause = std::chrono::milliseconds(2);
/// What is not kept waits for a forwarder with a full queue up to this much; then the oldest goes.
constexpr std::size_t most_waiting = 8192;
constexpr std::size_t most_waiting_bytes = 32u << 20;
/// Received from one forwarder and not yet looked at.
constexpr std::size_t most_unread = 32'768;
constexpr std::size_t most_unread_bytes = 64u << 20;
/// Own latest values, for forwarders that join later.
constexpr std::size_t most_own_bytes = 128u << 20;
constexpr std::size_t most_own_topics = 50'000;
/// How long what is not kept waits for the first forwarder: a command's one order must not be lost to a
/// connection that is still being made.
constexpr Duration first_join_patience = 5s;

/// A message as it goes on the wire.
struct Sealed {
  std::string topic;
  schema::Bytes envelope;
  schema::Bytes body;
  schema::Bytes proof;
};

/// The two sockets towards one forwarder, and what it has not got yet.
struct Link {
  zmq::socket_t out;  ///< XPUB: the forwarder's subscription tells that it has joined
  zmq::socket_t in;
  Backlog unread{most_unread, most_unread_bytes};
  bool joined = false;
  std::set<std::string> behind;                       ///< topics whose latest value it has not got
  std::deque<std::shared_ptr<const Sealed>> waiting;  ///< of kinds that are not kept
  std::size_t waiting_bytes = 0;

  bool has_backlog() const { return !behind.empty() || !waiting.empty(); }
};

std::string random_nonce() {
  std::array<std::uint8_t, 8> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return to_hex(bytes);
}

class NodeImpl final : public Node {
 public:
  NodeImpl(NodeOptions options, NodeHandlers handlers)
      : options_(std::move(options)),
        handlers_(std::move(handlers)),
        outbox_(options_.queue_messages, options_.queue_bytes),
        receiver_({keyring(), options_.config_fingerprint}),
        own_(most_own_bytes, most_own_topics),
        nonce_(random_nonce()) {}
  ~NodeImpl() override { stop(); }

  Status open() {
    if (keyring() != nullptr && keyring()->identity.id != options_.identity.id)
      return fail(ErrorKind::conflict, fmt::format("these are the keys of '{}'", keyring()->identity.id),
                  options_.identity.id.str());
    for (const ForwarderEndpoints& forwarder : options_.forwarders)
      if (auto status = connect(forwarder); !status) return status;
    for (const std::string& prefix : options_.subscriptions) apply({prefix, true});
    started_ = clock_now();
    thread_ = std::thread([this] { run(); });
    return {};
  }

  Status publish(const schema::Message& message) override {
    auto publication = prepare(message);
    Status status;
    if (!publication)
      status = tl::unexpected(std::move(publication.error()));
    else if (stopping_ || !outbox_.push(std::move(*publication)))
      status =
          fail(ErrorKind::unavailable, "the bus does not keep up: the queue of what is to be sent is full",
               std::string(schema::info_of(message).name));
    const std::lock_guard lock(mutex_);
    ++(status ? stats_.published : stats_.publish_refused);
    return status;
  }

  void subscribe(std::string prefix) override { outbox_.push(Subscription{std::move(prefix), true}); }
  void unsubscribe(std::string prefix) override { outbox_.push(Subscription{std::move(prefix), false}); }

  NodeStats stats() const override {
    const std::lock_guard lock(mutex_);
    NodeStats out = stats_;
    out.received = receiver_.stats();
    return out;
  }

  void stop() override {
    stopping_ = true;
    outbox_.wake();
    if (thread_.joinable()) thread_.join();
  }

 private:
  const Keyring* keyring() const { return options_.keyring ? &*options_.keyring : nullptr; }

  Status connect(const ForwarderEndpoints& forwarder) {
    const Member* server = nullptr;
    if (keyring() != nullptr) {
      server = keyring()->directory.find(forwarder.id);
      if (server == nullptr)
        return fail(ErrorKind::not_found, fmt::format("no public key of forwarder '{}'", forwarder.id),
                    "directory of keys", "run signalbox keys init with a configuration that names it");
    }
    for (const std::string& endpoint : {forwarder.publish, forwarder.subscribe})
      if (auto status = check_endpoint(endpoint, server != nullptr); !status) return status;
    if (server == nullptr) return connect(forwarder, nullptr), Status();
    connect(forwarder, &server->keys.curve);
    // While keys are rotated it is not known which ones the forwarder was started with: the other link fails.
    if (server->other) connect(forwarder, &server->other->curve);
    return {};
  }

  void connect(const ForwarderEndpoints& forwarder, const Key32* server) {
    const SocketSettings settings{options_.heartbeat, options_.heartbeat_timeout, options_.linger};
    Link& link = links_.emplace_back();
    link.out = open_socket(context_, zmq::socket_type::xpub, settings);
    link.in = open_socket(context_, zmq::socket_type::sub, settings);
    link.out.set(zmq::sockopt::xpub_verbose, true);
    link.out.set(zmq::sockopt::xpub_nodrop, true);  // its one peer's full queue is told, not dropped into
    // What was queued for a connection that broke is dropped with it, not sent when it is old.
    link.out.set(zmq::sockopt::immediate, true);
    if (server != nullptr) {
      secure_as_client(link.out, *keyring(), *server);
      secure_as_client(link.in, *keyring(), *server);
    }
    prepare_for(link.out, forwarder.publish);
    prepare_for(link.in, forwarder.subscribe);
    link.out.connect(forwarder.publish);
    link.in.connect(forwarder.subscribe);
  }

  Result<Publication> prepare(const schema::Message& message) const {
    const schema::MessageInfo& info = schema::info_of(message);
    if (auto status = schema::check(message); !status)
      return tl::unexpected(std::move(status.error()).within(info.name));
    Publication out{&info, schema::topic_of(message, options_.identity.id), {}, clock_now(), wall_now()};
    if (auto status = check_author(info, out.topic, options_.identity.id, &options_.identity); !status)
      return tl::unexpected(std::move(status.error()));
    out.body = codec::encode(message);
    if (out.body.size() > info.max_bytes)
      return fail(ErrorKind::too_large, fmt::format("{} bytes, at most {}", out.body.size(), info.max_bytes),
                  std::string(info.name));
    return out;
  }

  void run() {
    settle_thread("bus-node");
    std::vector<zmq::pollitem_t> items{{nullptr, outbox_.fd(), ZMQ_POLLIN, 0}};
    for (Link& link : links_)
      for (zmq::socket_t* socket : {&link.out, &link.in})
        items.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
    bool last = false;
    while (!last) {
      zmq::poll(items, poll_timeout());
      const bool ending = stopping_;
      for (Handed& handed : outbox_.take_all()) std::visit([this](auto& each) { take(each); }, handed);
      for (Link& link : links_) {
        read_joins(link);
        send_backlog(link);
      }
      release_held();
      if (ending)
        last = may_end();
      else
        for (Link& link : links_) read_messages(link);
    }
    links_.clear();
    context_.close();  // waits for `linger` at most
  }

  std::chrono::milliseconds poll_timeout() const {
    if (!stopping_ && std::ranges::any_of(links_, [](const Link& link) { return !link.unread.empty(); }))
      return std::chrono::milliseconds(0);
    for (const Link& link : links_)
      if (link.has_backlog()) return retry_pause;
    return std::chrono::milliseconds(stopping_ || !held_.empty() ? 10 : -1);
  }

  /// Told to stop: when nothing waits any more, or `linger` has passed.
  bool may_end() {
    if (!stop_by_) stop_by_ = clock_now() + options_.linger;
    const bool all_sent = held_.empty() && std::ranges::none_of(links_, &Link::has_backlog);
    return all_sent || clock_now() >= *stop_by_;
  }

  void take(Subscription& subscription) { apply(subscription); }
  void apply(const Subscription& subscription) {
    for (Link& link : links_)
      for (const std::string& topic :
           {subscription.prefix, fmt::format("@{}/{}", nonce_, subscription.prefix)})
        subscription.begins ? link.in.set(zmq::sockopt::subscribe, topic)
                            : link.in.set(zmq::sockopt::unsubscribe, topic);
  }

  void take(Publication& publication) {
    if (publication.info->keep == Duration::zero() && waits_for_first_join())
      held_.push_back(std::move(publication));
    else
      send(publication);
  }

  bool waits_for_first_join() const { return !joined_once_ && clock_now() < started_ + first_join_patience; }

  void release_held() {
    if (waits_for_first_join()) return;
    for (; !held_.empty(); held_.pop_front()) send(held_.front());
  }

  void send(Publication& publication) {
    const schema::MessageInfo& info = *publication.info;
    schema::Envelope envelope;
    envelope.source = options_.identity.id, envelope.incarnation = options_.incarnation;
    envelope.sequence = ++sequences_[publication.topic];
    envelope.sent = publication.said.time_since_epoch(), envelope.sent_wall = publication.said_wall;
    envelope.kind = info.kind, envelope.version = info.version;
    envelope.config_fingerprint = options_.config_fingerprint;
    auto sealed = std::make_shared<Sealed>(
        Sealed{std::move(publication.topic), codec::encode(envelope), std::move(publication.body), {}});
    if (keyring() != nullptr)
      sealed->proof =
          make_proof(*keyring(), info.protection, {sealed->topic, sealed->envelope, sealed->body});
    const auto frames = frames_of(*sealed);
    own_.put(Header{sealed->topic, &info, envelope, nullptr, {}}, frames, publication.said);
    for (Link& link : links_)
      if (info.keep > Duration::zero())
        offer_value(link, *sealed);
      else
        offer_record(link, sealed);
  }

  static std::array<FrameView, 4> frames_of(const Sealed& sealed) {
    return {as_frame(sealed.topic), sealed.envelope, sealed.body, sealed.proof};
  }

  /// Latest values overtake each other while the forwarder is slow or away: it gets the newest when it can.
  void offer_value(Link& link, const Sealed& sealed) {
    if (!link.joined) return count_not_sent(1);
    if (link.behind.contains(sealed.topic)) return;
    if (!send_frames(link.out, frames_of(sealed))) link.behind.insert(sealed.topic);
  }

  void offer_record(Link& link, const std::shared_ptr<const Sealed>& sealed) {
    if (!link.joined) return count_not_sent(1);
    if (link.waiting.empty() && send_frames(link.out, frames_of(*sealed))) return;
    link.waiting.push_back(sealed);
    link.waiting_bytes += sealed->body.size();
    for (; link.waiting.size() > most_waiting || link.waiting_bytes > most_waiting_bytes; count_not_sent(1))
      drop_waiting(link);
  }
  static void drop_waiting(Link& link) {
    link.waiting_bytes -= link.waiting.front()->body.size();
    link.waiting.pop_front();
  }

  void send_backlog(Link& link) {
    while (!link.waiting.empty() && send_frames(link.out, frames_of(*link.waiting.front())))
      drop_waiting(link);
    const Instant now = clock_now();
    while (!link.behind.empty()) {
      const std::string& topic = *link.behind.begin();
      const LastValues::Value* value = own_.next(topic, "", now);
      if (value != nullptr && !send_frames(link.out, ValueFrames(*value, now).frames())) return;
      link.behind.erase(link.behind.begin());
    }
  }

  void count_not_sent(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    stats_.not_sent += count;
  }

  void read_joins(Link& link) {
    zmq::message_t message;
    while (link.out.recv(message, zmq::recv_flags::dontwait)) {
      const auto text = message.to_string_view();
      if (text.size() == 1) set_joined(link, text.front() == '\x01');  // forwarders subscribe to everything
    }
  }

  void set_joined(Link& link, bool joined) {
    link.joined = joined;
    joined_once_ = joined_once_ || joined;
    count_not_sent(link.waiting.size());
    link.waiting.clear(), link.waiting_bytes = 0;
    link.behind.clear();
    if (joined)
      for (const auto* value = own_.next("", "", clock_now()); value != nullptr;
           value = own_.next("", value->topic, clock_now()))
        link.behind.insert(value->topic);
    const auto now_joined = std::ranges::count_if(links_, &Link::joined);
    const std::lock_guard lock(mutex_);
    stats_.forwarders_joined = static_cast<std::uint32_t>(now_joined);
  }

  void read_messages(Link& link) {
    note_overrun(link.unread.fill(link.in));
    for (std::size_t i = 0; i < messages_per_turn && link.unread.take(parts_); ++i) {
      const Instant now = clock_now();
      auto outcome = receive(now);
      if (outcome && handlers_.on_accepted) handlers_.on_accepted(parts_.frames(), **outcome, now);
      if (outcome && handlers_.on_delivery)
        handlers_.on_delivery(std::move(*outcome));
      else if (!outcome && outcome.error().reason != Drop::duplicate && handlers_.on_drop)
        handlers_.on_drop(outcome.error().reason, outcome.error().sender, as_text(parts_.frames()[0]),
                          outcome.error().why);
    }
  }

  void note_overrun(std::uint64_t count) {
    if (count == 0) return;
    const std::lock_guard lock(mutex_);
    receiver_.on_overrun(count);
  }

  tl::expected<schema::DeliveryPtr, Refusal> receive(Instant now) {
    const std::lock_guard lock(mutex_);
    return receiver_.on_frames(parts_.overlong() ? Frames() : parts_.frames(), now);
  }

  NodeOptions options_;
  NodeHandlers handlers_;
  Outbox outbox_;
  mutable std::mutex mutex_;  // of stats_ and receiver_
  NodeStats stats_;
  Receiver receiver_;
  LastValues own_;
  std::string nonce_;
  std::map<std::string, std::uint64_t> sequences_;
  std::deque<Publication> held_;
  Parts parts_;
  zmq::context_t context_;
  std::vector<Link> links_;
  Instant started_{};
  bool joined_once_ = false;
  std::optional<Instant> stop_by_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Node>> Node::start(NodeOptions options, NodeHandlers handlers) {
  try {
    auto out = std::make_unique<NodeImpl>(std::move(options), std::move(handlers));
    if (auto status = out->open(); !status) return tl::unexpected(std::move(status.error()));
    return out;
  } catch (const zmq::error_t& error) {
    return fail(ErrorKind::io, fmt::format("the bus cannot be opened: {}", error.what()));
  }
}

}  // namespace signalbox::bus
