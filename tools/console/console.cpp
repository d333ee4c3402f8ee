#include "tools/console/console.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdio>
#include <list>
#include <thread>

#include "actors/cluster_router/net/client.hpp"
#include "actors/cluster_router/net/serving.hpp"
#include "messages/base/json_text.hpp"
#include "messages/codec/codec.hpp"
#include "tools/cli/feed.hpp"
#include "tools/cli/observer.hpp"
#include "tools/console/model/state.hpp"
#include "tools/console/page.hpp"
#include "tools/observe/explain.hpp"
#include "tools/observe/record_text.hpp"

namespace signalbox::console {
namespace {

using net::ResponseWriter;
using net::ResponseWriterPtr;

const std::vector<std::string> topics{"beat/",    "signal/", "verdict/", "fleet/",  "snapshot/", "alive/",
                                      "receipt/", "demand/", "outcome/", "policy/", "alert/",    "decision/"};
/// A state tells the events and decisions of this many states before it, so that a page that is loading misses none.
constexpr std::size_t overlap = 20;
constexpr std::size_t most_listeners = 64;

/// Everything that is shown comes from here; a script of elsewhere has no place.
void respond(ResponseWriter& writer, int status, std::string_view type, std::string_view body) {
  const std::array fields{
      http::Field{"content-type", type}, http::Field{"cache-control", "no-store"},
      http::Field{"content-security-policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"},
      http::Field{"x-content-type-options", "nosniff"}};
  writer.respond(status, fields, body);
}
void respond_json(ResponseWriter& writer, int status, std::string_view body) {
  respond(writer, status, "application/json", body);
}
std::string error_json(std::string_view text) { return fmt::format("{{\"error\":{}}}", json_string(text)); }

std::string unescaped(std::string_view text) {
  std::string out;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += escaped ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    i += escaped ? 2 : 0;
  }
  return out;
}

class Console final : public net::HttpHandler {
 public:
  Console(net::Loop& loop, double every_s)
      : loop_(loop), every_(from_seconds(every_s)), timer_(loop, [this] { tick(); }) {}
  ~Console() override {
    for (Asking* asking : {&records_, &reasons_})
      if (asking->thread.joinable()) asking->thread.join();
  }

  Status open(cli::Source source, double speed) {
    fleet_ = source.fleet.config.fleet;
    cli::FeedOptions options;
    options.subscriptions = topics;
    options.speed = speed;
    options.on_message = [this](const auto& delivery, const auto& view, Instant now) {
      history_.on(delivery, view, now);
    };
    options.on_restart = [this] {
      history_ = {};
      ++generation_;
    };
    auto feed = cli::Feed::start(std::move(source), std::move(options));
    if (!feed) return tl::unexpected(std::move(feed.error()));
    feed_ = std::move(*feed);
    timer_.arm_in(every_);
    return {};
  }

  void on_request(ResponseWriterPtr writer) override {
    const auto& head = writer->request().head;
    std::string_view path = head.path();
    if (head.method == "POST" && path == "/replay") return steer(*writer);
    if (head.method != "GET" && head.method != "HEAD")
      return respond_json(*writer, 405, error_json("the console only reads"));
    if (path == "/events") return listen(std::move(writer));
    if (path == "/fleet")
      return respond_json(*writer, 200,
                          with_frame([&](const auto& view, const auto&, Instant, const Frame& frame) {
                            return fleet_json(view, frame, fleet_);
                          }));
    if (path == "/history")
      return respond_json(*writer, 200,
                          with_frame([&](const auto& view, const auto& timeline, Instant, const Frame&) {
                            return history_json(view, timeline, history_);
                          }));
    if (path.starts_with("/engine/")) {
      const EngineName name(unescaped(path.substr(8)));
      return respond_json(*writer, 200,
                          with_frame([&](const auto& view, const auto&, Instant now, const Frame&) {
                            return engine_json(view, name, now);
                          }));
    }
    if (path.starts_with("/explain/")) return explain(std::move(writer), unescaped(path.substr(9)));
    if (path.starts_with("/reasons/")) return give_reasons(std::move(writer), unescaped(path.substr(9)));
    if (path == "/") path = "/index.html";
    for (const PageFile& file : page_files())
      if (file.path == path) return respond(*writer, 200, file.content_type, file.bytes);
    respond(*writer, 404, "text/plain; charset=utf-8", "there is no such page\n");
  }

 private:
  template <class F>
  std::string with_frame(F&& f) {
    Frame frame;
    if (const auto position = feed_->position()) {
      frame.recording = true;
      frame.at_s = position->at_s, frame.length_s = position->length_s, frame.held = position->held;
    }
    return feed_->with([&](const fleet_view::FleetView& view, const fleet_view::Timeline& timeline,
                           Instant now) {
      const schema::FleetTable* table = view.newest_table();
      frame.version = fmt::format("{}-{}", table == nullptr ? "none" : table->content.brief(), generation_);
      return f(view, timeline, now, std::as_const(frame));
    });
  }

  void listen(ResponseWriterPtr writer) {
    if (listeners_.size() >= most_listeners)
      return respond_json(*writer, 503, error_json("too many pages are open"));
    const std::array fields{http::Field{"content-type", "text/event-stream"},
                            http::Field{"cache-control", "no-store"}};
    writer->begin(200, fields);
    listeners_.push_back(std::move(writer));
    tell({&listeners_.back(), 1}, state(false));
  }

  std::string state(bool with_sample) {
    return with_frame([&](const auto& view, const auto& timeline, Instant now, Frame frame) {
      if (with_sample) {
        marks_.push_back({timeline.noted(), history_.heard()});
        if (marks_.size() > overlap) marks_.pop_front();
      }
      if (!marks_.empty())
        frame.events_after = marks_.front().first, frame.decisions_after = marks_.front().second;
      const Sample* sample = history_.samples().empty() ? nullptr : &history_.samples().back();
      if (!with_sample || (sample != nullptr && sample->at == sampled_)) sample = nullptr;
      if (sample != nullptr) sampled_ = sample->at;
      return state_json(view, timeline, history_, now, frame, sample);
    });
  }

  static void tell(std::span<const ResponseWriterPtr> to, const std::string& json) {
    const std::string event = "data: " + json + "\n\n";
    for (const ResponseWriterPtr& writer : to)
      if (!writer->ended() && writer->waiting_bytes() < most_waiting) writer->write(event);
  }

  void tick() {
    timer_.arm_in(every_);
    std::erase_if(listeners_, [](const ResponseWriterPtr& writer) { return writer->ended(); });
    const std::string json = state(true);
    tell(listeners_, json);
  }

  void steer(ResponseWriter& writer) {
    simdjson::dom::parser parser;
    simdjson::dom::element body;
    bool held = false;
    double at_s = 0;
    if (parser.parse(std::string(writer.request().body)).get(body) != simdjson::SUCCESS)
      return respond_json(writer, 400, error_json("that is no JSON"));
    if (!feed_->position()) return respond_json(writer, 409, error_json("this is no recording"));
    if (body["held"].get(held) == simdjson::SUCCESS) feed_->hold(held);
    if (body["at_s"].get(at_s) == simdjson::SUCCESS) feed_->seek(at_s);
    respond_json(writer, 200, "{}");
  }

  /// Empty if it was not heard, or is forgotten.
  std::string heard_record(const std::string& decision) {
    return with_frame([&](const auto&, const auto&, Instant, const Frame&) {
      const schema::DecisionRecord* record = history_.find(decision);
      return record == nullptr ? std::string() : codec::to_json(schema::Message(*record));
    });
  }

  /// A question that is asked beside the loop, one of its kind at a time.
  struct Asking {
    bool asked = false;
    std::thread thread;
  };
  template <class Question, class Respond>
  void ask(Asking& asking, ResponseWriterPtr writer, Question question, Respond respond) {
    if (asking.asked)
      return respond_json(*writer, 503, error_json("another decision is being looked for; try again"));
    if (asking.thread.joinable()) asking.thread.join();
    asking.asked = true;
    asking.thread = std::thread([this, &asking, writer, question, respond] {
      const Result<std::string> answer = question();
      loop_.post([&asking, writer, answer, respond] {
        asking.asked = false;
        if (answer)
          respond(*writer, *answer);
        else
          respond_json(*writer, 404, error_json(answer.error().text()));
      });
    });
  }

  /// From what was heard; else the routers or the recording are asked.
  void explain(ResponseWriterPtr writer, const std::string& decision) {
    const std::string heard = heard_record(decision);
    if (!heard.empty()) return respond_record(*writer, heard);
    ask(
        records_, std::move(writer),
        [this, decision] { return observe::find_record(feed_->source(), decision, patience); },
        [this](ResponseWriter& to, const std::string& json) { respond_record(to, json); });
  }

  /// Why the plan that a decision read gave its class these weights.
  void give_reasons(ResponseWriterPtr writer, const std::string& decision) {
    const auto find = [this, decision, heard = heard_record(decision)]() -> Result<std::string> {
      const auto& source = feed_->source();
      const auto record = heard.empty() ? observe::find_record(source, decision, patience) : heard;
      if (!record) return tl::unexpected(record.error());
      return fleet_view::as_json(observe::reasons_of(source, *record, patience));
    };
    ask(reasons_, std::move(writer), find,
        [](ResponseWriter& to, const std::string& json) { respond_json(to, 200, json); });
  }

  void respond_record(ResponseWriter& writer, const std::string& json) {
    std::vector<std::string> engines;
    for (const auto& engine : feed_->source().fleet.config.engines) engines.push_back(engine.name.str());
    const auto sentence = observe::record_sentence(json, engines);
    if (!sentence) return respond_json(writer, 500, error_json(sentence.error().text()));
    respond_json(writer, 200, fmt::format("{{\"sentence\":{},\"record\":{}}}", json_string(*sentence), json));
  }

  static constexpr Duration patience = 3s;
  static constexpr std::size_t most_waiting = 4u << 20;

  net::Loop& loop_;
  Duration every_;
  net::Timer timer_;
  std::string fleet_;
  History history_;               // under the feed's lock
  std::uint64_t generation_ = 0;  // likewise
  std::vector<ResponseWriterPtr> listeners_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>>
      marks_;  ///< events and decisions noted by the latest states
  Instant sampled_ = never_yet;
  Asking records_, reasons_;
  std::unique_ptr<cli::Feed> feed_;  // last: its thread uses the rest
};

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("localhost:") || address.starts_with("[::1]");
}

}  // namespace

Status console(const ConsoleOptions& options) {
  if (page_files().empty())
    return fail(ErrorKind::unavailable, "this build has no page: its chart library was not there", {},
                "run tools/setup console, then build again");
  auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(std::move(source.error()));
  const auto address = net::resolve_url(options.listen);
  if (!address) return tl::unexpected(address.error());
  net::Loop loop;
  Console handler(loop, options.every_s);
  if (Status opened = handler.open(std::move(*source), options.speed); !opened) return opened;
  net::HttpServer server(loop, handler, {});
  if (const Status listening = server.listen(*address); !listening) return listening;
  const net::StopOnSignal stops(loop);
  fmt::print("http://{}/\n", net::listening_at(*address, server));
  std::fflush(stdout);
  if (!is_loopback(options.listen))
    fmt::print(stderr, "console: whoever reaches {} can look at this fleet\n", options.listen);
  loop.run();
  return {};
}

}  // namespace signalbox::console
