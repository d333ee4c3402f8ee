#include "actors/operator/metrics.hpp"

#include <fmt/format.h>

namespace signalbox::operators {

namespace {

class Exposition {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void sample(std::string_view name, std::string_view labels, double value) {
    text_ += labels.empty() ? fmt::format("{} {:.17g}\n", name, value)
                            : fmt::format("{}{{{}}} {:.17g}\n", name, labels, value);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    family(name, "gauge", help);
    sample(name, {}, value);
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    family(name, "counter", help);
    sample(name, {}, static_cast<double>(value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_process(Exposition& out, const schema::Beat& beat) {
  out.family("signalbox_process_info", "gauge", "What this process is.");
  out.sample("signalbox_process_info",
             fmt::format("role=\"{}\",id=\"{}\",cluster=\"{}\"", name_of(beat.role), beat.id, beat.cluster),
             1);
  out.gauge("signalbox_ready", "1 while the process does its work.", beat.ready ? 1 : 0);
  out.gauge("signalbox_uptime_seconds", "Time since the start.", to_seconds(beat.uptime));
  out.gauge("signalbox_resident_bytes", "Resident memory.", static_cast<double>(beat.resident_bytes));
}

void add_received(Exposition& out, const bus::SenderStats& total) {
  out.counter("signalbox_bus_accepted_total", "Messages received and delivered.", total.accepted);
  out.counter("signalbox_bus_missed_total", "Sequence numbers jumped over.", total.missed);
  out.counter("signalbox_bus_recovered_total", "Of these, arrived after all.", total.recovered);
  out.family("signalbox_bus_dropped_total", "counter", "Messages dropped on receipt, by reason.");
  for (std::size_t i = 0; i < enum_size<bus::Drop>; ++i)
    out.sample("signalbox_bus_dropped_total",
               fmt::format("reason=\"{}\"", name_of(static_cast<bus::Drop>(i))),
               static_cast<double>(total.dropped[i]));
}

}  // namespace

std::string metrics_of(const kit::Process& process) {
  const schema::Beat beat = process.beat({});
  const bus::NodeStats stats = process.bus_stats();
  Exposition out;
  add_process(out, beat);
  out.gauge("signalbox_leads", "1 while the process is the leader.", beat.leads ? 1 : 0);
  out.gauge("signalbox_term", "Counter of the highest term known.", static_cast<double>(beat.term.counter));
  out.gauge("signalbox_snapshot_sequence", "Sequence of the snapshot in force.",
            static_cast<double>(beat.snapshot.sequence));
  out.counter("signalbox_actor_restarts_total", "Actors that failed and were started again.",
              beat.actors_restarted);
  out.gauge("signalbox_bus_forwarders_joined", "Forwarders that take what is published.",
            stats.forwarders_joined);
  out.counter("signalbox_bus_published_total", "Messages published.", stats.published);
  out.counter("signalbox_bus_publish_refused_total", "Messages refused before sending.",
              stats.publish_refused);
  out.counter("signalbox_bus_not_sent_total", "Messages that a forwarder did not take.", stats.not_sent);
  add_received(out, stats.received.total());
  std::string text = out.take();
  for (const auto& more : process.metrics()) text += more();
  return text;
}

std::string metrics_of(const schema::Beat& beat, const bus::ForwarderStats& stats) {
  Exposition out;
  add_process(out, beat);
  out.counter("signalbox_forwarder_forwarded_total", "Messages passed on.", stats.forwarded);
  out.counter("signalbox_forwarder_thinned_total", "Long values that a newer one of their topic replaced.",
              stats.thinned);
  out.counter("signalbox_forwarder_replayed_total", "Latest values sent to late subscribers.",
              stats.replayed);
  out.counter("signalbox_forwarder_keys_refused_total", "Handshakes with a key that is not of the fleet.",
              stats.keys_refused);
  out.gauge("signalbox_forwarder_cached_topics", "Topics whose latest value is kept.",
            static_cast<double>(stats.cached_topics));
  out.gauge("signalbox_forwarder_cached_bytes", "Memory of these values.",
            static_cast<double>(stats.cached_bytes));
  out.counter("signalbox_forwarder_cache_evicted_total", "Values let go because the cache was full.",
              stats.cache_evicted);
  add_received(out, stats.total());
  return out.take();
}

}  // namespace signalbox::operators
