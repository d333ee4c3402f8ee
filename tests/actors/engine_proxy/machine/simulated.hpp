// A simulated engine under load, read by its proxy every 250 ms in virtual time.
#pragma once

#include <vector>

#include "actors/engine_proxy/machine/machine.hpp"
#include "messages/base/rng.hpp"
#include "tools/engine_sim/api/metrics.hpp"
#include "tools/engine_sim/machine/engine.hpp"

namespace signalbox::engine_proxy::testing {

class Simulated {
 public:
  /// The engine is as `real` says; the proxy is told `declared`.
  Simulated(const optimizer::StepTime& real, const optimizer::StepTime& declared, std::uint64_t seed)
      : rng_(seed), engine_(engine_options(real), seed), proxy_(proxy_options(declared)) {}

  /// Requests come at `rate_per_s` for so long.
  void run(Duration span, double rate_per_s, double prompt = 400, double output = 100) {
    const Instant end = now_ + span;
    arrival_ = rate_per_s > 0 ? now_ + from_seconds(rng_.exponential(1 / rate_per_s)) : end_of_time;
    while (true) {
      const Instant next = std::min({arrival_, engine_.next_wake(), wake_});
      if (next > end) break;
      now_ = next;
      events_.clear();
      if (engine_.next_wake() <= now_) engine_.on_wake(now_, events_);
      if (arrival_ <= now_) {
        engine_.submit(request(prompt, output), now_);
        arrival_ = now_ + from_seconds(rng_.exponential(1 / rate_per_s));
      }
      if (wake_ <= now_) wake();
    }
    now_ = end;
  }
  void slow_down(double factor) { engine_.set_faults({.slowness = factor, .frozen = false}, now_); }
  /// Readings fail while this is set.
  void cut_off(bool off) { cut_off_ = off; }

  const schema::EngineSignal& signal() const { return signal_; }
  const std::vector<schema::EngineProfile>& profiles() const { return profiles_; }
  Curve curve() const { return proxy_.view().curve; }
  const engine_sim::Engine& engine() const { return engine_; }
  Instant now() const { return now_; }
  std::vector<double> batches;  ///< at each reading

 private:
  static engine_sim::EngineOptions engine_options(const optimizer::StepTime& real) {
    engine_sim::EngineOptions out;
    out.curve = {real.a_s, real.b_s, real.k_s, real.c_s};
    out.step_noise = 0.05;
    out.report_tokens = false;
    return out;
  }
  static Options proxy_options(const optimizer::StepTime& declared) {
    Options out;
    out.engine = EngineName("e1");
    out.cluster = ClusterName("west");
    out.kind = EngineKind::sim;
    out.curve = declared;
    out.kv_tokens = 16384 * 16;
    return out;
  }
  engine_sim::Request request(double prompt, double output) {
    const auto length = [&](double mean) {
      return static_cast<std::uint32_t>(std::max(1.0, mean * std::exp(0.5 * rng_.normal() - 0.125)));
    };
    engine_sim::Request out;
    out.id = ++id_;
    out.prompt_tokens = length(prompt);
    out.output_tokens = out.max_output_tokens = length(output);
    return out;
  }
  void wake() {
    wake_ = end_of_time;
    Machine::Effects effects;
    proxy_.on_wake(now_, effects);
    take(effects);
  }
  void take(const Machine::Effects& effects) {
    for (const auto& message : effects.publish) {
      if (const auto* s = std::get_if<schema::EngineSignal>(&message)) signal_ = *s;
      if (const auto* p = std::get_if<schema::EngineProfile>(&message)) profiles_.push_back(*p);
    }
    if (effects.wake) wake_ = *effects.wake;
    for (const StartScrape& scrape : effects.commands) {
      ScrapeResult result;
      result.number = scrape.number, result.page = scrape.page;
      result.fault = cut_off_ ? FetchFault::unreachable : FetchFault::none;
      if (!cut_off_) result.status = 200, result.body = engine_sim::metrics_text(engine_, "m", 1);
      batches.push_back(engine_.load().running);
      Machine::Effects answer;
      proxy_.on(Machine::Input(result), now_, answer);
      take(answer);
    }
  }

  Rng rng_;
  engine_sim::Engine engine_;
  Machine proxy_;
  schema::EngineSignal signal_;
  std::vector<schema::EngineProfile> profiles_;
  std::vector<engine_sim::Event> events_;
  Instant now_ = instant_at(1s), wake_ = instant_at(1s), arrival_ = end_of_time;
  std::uint64_t id_ = 0;
  bool cut_off_ = false;
};

}  // namespace signalbox::engine_proxy::testing
