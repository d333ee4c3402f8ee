#include "tools/engine_sim/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "actors/cluster_router/net/serving.hpp"
#include "tools/cli/exit.hpp"
#include "tools/engine_sim/server.hpp"

namespace signalbox::engine_sim {
namespace {

struct Arguments {
  std::string listen = "127.0.0.1:0";
  std::uint64_t kv_tokens = 262144;
  std::string tls_certificate, tls_key;
  std::string kv_format = "maps";
  ServerOptions server;
};

Status serve(Arguments arguments) {
  EngineOptions& engine = arguments.server.engine;
  if (engine.block_tokens > 0)
    engine.kv_blocks = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(arguments.kv_tokens / engine.block_tokens, UINT32_MAX - 1));
  if (const Status fine = check(engine); !fine) return fine;
  const auto address = net::resolve_url(arguments.listen);
  if (!address) return tl::unexpected(address.error());

  net::Loop loop;
  arguments.server.kv.format = arguments.kv_format == "arrays" ? KvFormat::arrays : KvFormat::maps;
  engine.report_blocks = !arguments.server.kv.events.empty();
  EngineServer handler(loop, arguments.server);
  if (const Status published = handler.publish_kv_events(); !published) return published;
  net::HttpServer server(loop, handler, {});
  if (!arguments.tls_certificate.empty()) {
    auto tls = net::TlsServer::load(arguments.tls_certificate, arguments.tls_key);
    if (!tls) return tl::unexpected(tls.error());
    server.use_tls(*std::move(tls));
  }
  if (const Status listening = server.listen(*address); !listening) return listening;
  const net::StopOnSignal stops(loop);
  fmt::print("{{\"listening\": \"{}\"}}\n", net::listening_at(*address, server));
  std::fflush(stdout);
  loop.run();
  return {};
}

}  // namespace

void add_engine_sim(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  ServerOptions& server = arguments->server;
  EngineOptions& engine = server.engine;
  CLI::App& command =
      *app.add_subcommand("engine-sim", "An inference engine's stand-in: OpenAI's API, no model");
  command.footer(
      "A step takes a + b * decoding sequences + k * context tokens + c * prefill tokens seconds.\n"
      "Faults: POST /admin/faults with {\"slow\": 3}, {\"freeze\": true}, {\"refuse\": true}, {\"hang\": "
      "true},\n"
      "{\"error_ratio\": 0.2}, {\"die_mid_stream\": true}, {\"status\": 503}, {\"kv_lost\": true}, "
      "{\"kv_strange\": true},\n{\"reset\": true}. POST /reset_prefix_cache empties the prefix cache.\n\n"
      "Examples:\n"
      "  signalbox engine-sim --listen 127.0.0.1:8000 --models small\n"
      "  signalbox engine-sim --models small large --speed 2 --kv-tokens 65536 --name e1");
  command.add_option("--listen", arguments->listen, "host:port; port 0 takes a free one, printed on stdout")
      ->capture_default_str();
  CLI::Option* certificate = command.add_option("--tls-certificate", arguments->tls_certificate,
                                                "speak TLS and show this certificate (PEM)");
  CLI::Option* key = command.add_option("--tls-key", arguments->tls_key, "its private key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  command.add_option("--name", server.name, "its name in answers and errors")->capture_default_str();
  command.add_option("--models", server.models, "the models that it serves")->required()->delimiter(',');
  command.add_option("--a", engine.curve.a_s, "seconds of an empty step")->capture_default_str();
  command.add_option("--b", engine.curve.b_s_per_sequence, "seconds for each decoding sequence")
      ->capture_default_str();
  command.add_option("--k", engine.curve.k_s_per_context_token, "seconds for each token of context")
      ->capture_default_str();
  command.add_option("--c", engine.curve.c_s_per_prefill_token, "seconds for each prefill token")
      ->capture_default_str();
  command.add_option("--speed", engine.speed, "divides every step's time")->capture_default_str();
  command.add_option("--noise", engine.step_noise, "standard deviation of the logarithm of a step's time")
      ->capture_default_str();
  command.add_option("--kv-tokens", arguments->kv_tokens, "KV memory in tokens")->capture_default_str();
  command.add_option("--block-tokens", engine.block_tokens, "tokens of a KV block")->capture_default_str();
  command.add_option("--kv-events", server.kv.events,
                     "publish KV events as vLLM does, at this ZeroMQ endpoint");
  command.add_option("--kv-replay", server.kv.replay, "send the latest of them again at this one");
  command.add_option("--kv-buffer", server.kv.buffer, "batches kept for that")->capture_default_str();
  command.add_option("--kv-format", arguments->kv_format, "maps (vLLM since 0.24) or arrays")
      ->check(CLI::IsMember({"maps", "arrays"}))
      ->capture_default_str();
  command.add_option("--max-batch", engine.max_batch, "most sequences in the batch")->capture_default_str();
  command.add_option("--max-waiting", engine.max_waiting, "most requests in the queue; more get 503")
      ->capture_default_str();
  command.add_option("--step-tokens", engine.step_tokens, "most tokens in a step")->capture_default_str();
  command.add_option("--chunk-tokens", engine.chunk_tokens, "most prefill tokens of one request in a step")
      ->capture_default_str();
  command
      .add_option("--output-tokens", server.output_tokens, "length of an answer that the client does not cut")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  command.add_option("--seed", server.seed, "of answers, noise and fault ratios")->capture_default_str();
  command
      .add_option("--time-scale", server.time_scale,
                  "engine seconds in a second; its metrics count engine seconds")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  command.callback([arguments] { cli::finish("engine-sim", serve(*arguments)); });
}

}  // namespace signalbox::engine_sim
