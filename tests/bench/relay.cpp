// The gateway and a fast engine as plain processes, to load from outside and to weigh beside other proxies:
//   bench_relay engine PORT           answers POSTs: 1 KB of JSON, or a stream of {"events":N} events, one each "every_ms"
//   bench_relay gateway PORT ENGINE_PORT...
//   bench_relay filing PORT ENGINE_PORT...  the same, and its decisions are written to a ring file, as a router does
//   bench_relay observed PORT ENGINE_PORT... that, and one request in a hundred is traced, up to the text that a collector gets
//   bench_relay beside PORT ENGINE_PORT...  the same without, beside a thread that does nothing: what threads cost is in both
//   bench_relay decide ENGINES TIMES  decides, for whoever counts its instructions
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "actors/cluster_router/gateway/gateway.hpp"
#include "actors/cluster_router/records/record_file.hpp"
#include "actors/cluster_router/tracing/otlp.hpp"
#include "cluster-config/policy/compile.hpp"
#include "tools/bench/decide/decide.hpp"

using namespace signalbox;

namespace {

net::Loop* running = nullptr;

std::uint64_t number_in(std::string_view body, std::string_view key, std::uint64_t otherwise) {
  const std::size_t at = body.find(key);
  if (at == std::string_view::npos) return otherwise;
  std::uint64_t out = otherwise;
  const std::string_view rest = body.substr(body.find(':', at) + 1);
  std::from_chars(rest.data(), rest.data() + rest.size(), out);
  return out;
}

/// A stream that sends an event at each tick of its own timer.
struct Ticker final : net::ResponseObserver {
  Ticker(net::Loop& loop, net::ResponseWriterPtr to, std::uint64_t count, Duration every)
      : writer(std::move(to)), left(count), period(every), timer(loop, [this] { tick(); }) {
    writer->observe(this);
    const std::vector fields{http::Field{"content-type", "text/event-stream"}};
    writer->begin(200, fields);
    tick();
  }
  void tick() {
    static const std::string event =
        R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]})"
        "\n\n";
    if (left-- > 0) {
      writer->write(event);
      if (period == Duration::zero()) return tick();
      return timer.arm_in(period);
    }
    writer->write("data: [DONE]\n\n");
    writer->finish();
    delete this;
  }
  void on_client_gone() override { delete this; }

  net::ResponseWriterPtr writer;
  std::uint64_t left;
  Duration period;
  net::Timer timer;
};

struct Engine final : net::HttpHandler {
  explicit Engine(net::Loop& on) : loop(on) {}
  void on_request(net::ResponseWriterPtr writer) override {
    const std::string_view body = writer->request().body;
    if (const std::uint64_t events = number_in(body, "\"events\"", 0); events > 0) {
      const auto every = std::chrono::milliseconds(number_in(body, "\"every_ms\"", 0));
      new Ticker(loop, std::move(writer), events, every);
      return;
    }
    const std::vector fields{http::Field{"content-type", "application/json"}};
    writer->respond(200, fields, answer);
  }
  net::Loop& loop;
  std::string answer =
      R"({"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":")" +
      std::string(800, 'x') +
      R"("},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":160,"total_tokens":360}})";
};

std::shared_ptr<schema::FleetTable> table_of(const std::vector<std::string>& ports) {
  auto table = std::make_shared<schema::FleetTable>();
  table->clusters.push_back({ClusterName("c1"), DomainName("r"), DomainName("here")});
  for (const std::string& port : ports) {
    schema::EngineRow row;
    row.name = EngineName("e" + port);
    row.cluster = ClusterIndex(0);
    row.rack = DomainName("rack" + port);
    row.url = "http://127.0.0.1:" + port;
    row.models = {ModelName("m")};
    row.step_s = 0.01, row.per_sequence_s = 0.001, row.per_prefill_token_s = 1e-5, row.kv_tokens = 1e9,
    row.max_batch = 10'000;
    table->engines.push_back(row);
  }
  return table;
}

gateway::Routes routes_of(const std::vector<std::string>& ports) {
  auto policy = policy::compile_text(
      "policy bench version 1\nmodels { m versions 1.0 }\nclass all { tenants * model m criticality critical "
      "residency any }\n"
      "otherwise reject 403\nlimits { in_flight(engine) <= 20000 }\ntimeouts connect 2s first_byte 60s gap "
      "60s total 600s\n",
      "bench");
  if (!policy) std::fprintf(stderr, "%s\n", policy.error().text().c_str()), std::exit(1);
  routing::ViewInputs inputs;
  inputs.cluster = ClusterName("c1");
  inputs.policy = std::make_shared<policy::CompiledPolicy>(std::move(*policy));
  inputs.table = table_of(ports);
  auto view = routing::build_view(inputs, nullptr);
  if (!view) std::fprintf(stderr, "%s\n", view.error().detail.c_str()), std::exit(1);
  return {*view, gateway::build_address_book(*inputs.table, {})};
}

void report(const gateway::GatewayCounters& counters) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double cpu_us = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
                        static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  std::printf(
      "requests %llu events %llu cpu_us %.0f us_per_request %.2f us_per_event %.2f max_rss_kb %ld attempts "
      "%llu broken %llu\n",
      static_cast<unsigned long long>(counters.requests), static_cast<unsigned long long>(counters.events),
      cpu_us, cpu_us / static_cast<double>(std::max<std::uint64_t>(counters.requests, 1)),
      cpu_us / static_cast<double>(std::max<std::uint64_t>(counters.events, 1)), used.ru_maxrss,
      static_cast<unsigned long long>(counters.attempts),
      static_cast<unsigned long long>(counters.streams_broken));
}

/// Writes what the gateway hands out, twenty times a second.
void file_decisions(std::stop_token stop, routing::PlainQueue<routing::FiledRecord>& queue) {
  const std::string path = "/tmp/bench_relay." + std::to_string(getpid()) + ".ring";
  auto file = cluster_router::RecordFile::open(path, 1'000'000);
  if (!file) std::fprintf(stderr, "%s\n", file.error().text().c_str()), std::exit(1);
  unlink(path.c_str());
  std::vector<routing::FiledRecord> records;
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  for (bool last = false; !last;) {
    last = stop.stop_requested();
    if (!last) wake.wait_for(lock, stop, 50ms, [] { return false; });
    records.clear();
    queue.take(records);
    if (const Status done = file->append(records); !done)
      std::fprintf(stderr, "%s\n", done.error().text().c_str()), std::exit(1);
  }
}

/// Takes traces as often as a router does, and forgets them when they could be sent.
struct TraceSink {
  TraceSink(net::Loop& loop, gateway::Gateway& from) : relay(from), timer(loop, [this] { take(); }) {
    timer.arm_in(250ms);
  }
  void take() {
    const auto traces = relay.take_traces();
    if (!traces.empty())
      bytes += tracing::otlp_json(traces, {"bench", ClusterName("c1"), ProcessName("router")}, 0s).size();
    timer.arm_in(250ms);
  }
  gateway::Gateway& relay;
  std::size_t bytes = 0;
  net::Timer timer;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 2)
    return std::fprintf(
               stderr,
               "bench_relay engine PORT | gateway|filing|observed|beside PORT ENGINE_PORT... | decide "
               "ENGINES TIMES\n"),
           2;
  if (arguments[0] == "decide" && arguments.size() == 3) {
    const std::uint64_t sum =
        bench::decide_often(number_in(":" + arguments[1], ":", 0), number_in(":" + arguments[2], ":", 0));
    return std::printf("%llu\n", static_cast<unsigned long long>(sum)), 0;
  }
  net::Loop loop;
  running = &loop;
  std::signal(SIGTERM, [](int) { running->stop(); });
  std::signal(SIGINT, [](int) { running->stop(); });
  const auto port = static_cast<std::uint16_t>(number_in(":" + arguments[1], ":", 0));
  const auto address = net::resolve("127.0.0.1", port);
  if (arguments[0] == "engine") {
    Engine engine(loop);
    net::HttpServer server(loop, engine, {});
    if (auto listening = server.listen(*address); !listening)
      return std::fprintf(stderr, "%s\n", listening.error().text().c_str()), 1;
    loop.run();
    return 0;
  }
  gateway::GatewayOptions options;
  const bool observed = arguments[0] == "observed";
  options.dispatcher.file_records = observed || arguments[0] == "filing";
  options.traces = {observed, 0.01, 1e6};
  gateway::Gateway relay(loop, options);
  std::optional<TraceSink> traces;
  if (observed) traces.emplace(loop, relay);
  std::jthread clerk;
  if (arguments[0] == "beside")
    clerk = std::jthread([](std::stop_token stop) {
      std::mutex mutex;
      std::condition_variable_any wake;
      std::unique_lock lock(mutex);
      wake.wait(lock, stop, [] { return false; });
    });
  if (auto* queue = relay.dispatcher().filed())
    clerk = std::jthread([queue](std::stop_token stop) { file_decisions(std::move(stop), *queue); });
  if (auto listening = relay.listen(*address); !listening)
    return std::fprintf(stderr, "%s\n", listening.error().text().c_str()), 1;
  relay.adopt(routes_of({arguments.begin() + 2, arguments.end()}));
  loop.run();
  if (clerk.joinable()) clerk.request_stop(), clerk.join();
  report(relay.counters());
  return 0;
}
