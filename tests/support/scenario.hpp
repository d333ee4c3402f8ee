// Scenarios as text. A file under tests/golden/transcripts holds what a machine is told, and, indented below each line,
// all that it answers; SIGNALBOX_REWRITE=1 writes the answers anew.
//
//   start                                what the machine does on its first wake, at 0 s
//   @ 1.5                                the time goes on to 1.5 s; wakes on the way are served
//   hear beat role=... from=opt-1        a message arrives (from=, age= and incarnation= are the envelope's)
//   tell <input> ...                     an input of the role's own, read by the test's driver
//   show                                 the driver prints the machine's view
//   # ...                                a remark
#pragma once

#include <boost/test/unit_test.hpp>
#include <functional>
#include <map>
#include <sstream>

#include "actors/kit/shape/machine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/message_text.hpp"

namespace signalbox::tests {

/// What a test provides for its role.
template <class M>
struct Driver {
  std::function<M()> make;
  std::function<typename M::Input(const std::string& name, Reader& in)> input;
  std::function<std::string(const typename M::Command&)> show_command;
  std::function<std::string(const M&)> show_view;
  std::map<std::string, std::string> words;  ///< $name in a scenario
};

inline std::string show_line(Instant now, std::string_view verb, std::string_view text) {
  return fmt::format("    {:.3f} {} {}\n", to_seconds(now.time_since_epoch()), verb, text);
}

inline std::string show_log(const kit::LogLine& l) {
  std::string text = l.text;
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n')) text.replace(at, 1, "\\n");
  return fmt::format("{} {}: {}", name_of(l.severity), l.event, text);
}

template <class Command>
std::string show_effects(const kit::Effects<Command>& effects, Instant now,
                         const std::function<std::string(const Command&)>& show_command) {
  std::string out;
  for (const auto& p : effects.persist) out += show_line(now, "keep", p.name + " " + show_value(p.bytes));
  for (const auto& m : effects.publish) out += show_line(now, "say", show(m));
  for (const auto& c : effects.commands) out += show_line(now, "do", show_command(c));
  for (const auto& l : effects.log) out += show_line(now, "log", show_log(l));
  return out;
}

/// Hosts one machine in a plain loop. The same steps under CAF are tests/actors/kit's.
template <class M>
class PlainHost {
 public:
  PlainHost(const Driver<M>& driver, Instant start) : driver_(driver), machine_(driver.make()), now_(start) {
    act([&](auto& e) { machine_.on_wake(now_, e); });
  }
  void advance(Instant to) {
    for (int wakes = 0; wake_ && *wake_ <= to; ++wakes) {
      if (wakes > 100'000) throw std::runtime_error("the machine wakes itself without end");
      now_ = std::max(now_, *wake_);
      wake_.reset();
      act([&](auto& e) { machine_.on_wake(now_, e); });
    }
    now_ = to;
  }
  template <class Told>
  void tell(const Told& told) {
    act([&](auto& e) { machine_.on(told, now_, e); });
  }
  Instant now() const { return now_; }
  const M& machine() const { return machine_; }
  std::string take_text() { return std::exchange(text_, {}); }

 private:
  template <class F>
  void act(F&& f) {
    kit::Effects<typename M::Command> effects;
    f(effects);
    if (effects.wake) wake_ = effects.wake;
    text_ += show_effects<typename M::Command>(effects, now_, driver_.show_command);
  }
  const Driver<M>& driver_;
  M machine_;
  Instant now_;
  std::optional<Instant> wake_;
  std::string text_;
};

inline schema::Delivery read_delivery(Reader& in) {
  schema::Delivery out;
  const std::string name = in.word();
  std::string fields;
  for (std::string text = in.rest(); !text.empty();) {  // the envelope's words come first
    Reader probe(text);
    const std::string key = probe.word();
    if (key != "from" && key != "age" && key != "incarnation") {
      fields = text;
      break;
    }
    probe.take('=');
    if (key == "from") read_value(probe, out.envelope.source);
    if (key == "age") read_value(probe, out.age);
    if (key == "incarnation") read_value(probe, out.envelope.incarnation);
    text = probe.rest();
  }
  if (out.envelope.source.empty()) out.envelope.source = ProcessName("someone");
  Reader body(fields);
  out.message = read_message(body, name);
  out.topic = schema::topic_of(out.message, out.envelope.source);
  return out;
}

/// The scenario with the answers of a machine in `Host` below each of its lines.
template <class M, class Host = PlainHost<M>>
std::string run_scenario(const std::string& scenario, const Driver<M>& driver) {
  Host host(driver, instant_at(0s));
  std::string out;
  std::istringstream lines(scenario);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    ")) continue;
    out += line + "\n";
    if (line.empty() || line.starts_with('#')) continue;
    if (line == "start") {
      out += host.take_text();
      continue;
    }
    for (const auto& [name, value] : driver.words)
      for (auto at = line.find("$" + name); at != std::string::npos; at = line.find("$" + name))
        line.replace(at, name.size() + 1, value);
    Reader in(line);
    const std::string verb = in.word();
    if (verb == "@") {
      host.advance(instant_at(from_seconds(number<double>(in.word()))));
    } else if (verb == "hear") {
      host.tell(read_delivery(in));
    } else if (verb == "tell") {
      const std::string name = in.word();
      host.tell(driver.input(name, in));
    } else if (verb == "show") {
      out += driver.show_view(host.machine());
    } else {
      in.fail("unknown verb " + verb);
    }
    out += host.take_text();
  }
  return out;
}

/// Checks (or rewrites) tests/golden/transcripts/<name>.txt. Returns the transcript.
template <class M, class Host = PlainHost<M>>
std::string check_transcript(const std::string& name, const Driver<M>& driver) {
  const auto path = source_path("tests/golden/transcripts/" + name + ".txt");
  const std::string recorded = read_file(path);
  BOOST_REQUIRE_MESSAGE(!recorded.empty(), "an empty scenario: " << path);
  const std::string now = run_scenario<M, Host>(recorded, driver);
  if (std::is_same_v<Host, PlainHost<M>> && rewriting()) {
    write_file(path, now);
  } else if (now != recorded) {
    std::istringstream a(recorded), b(now);
    std::string left, right;
    int line = 0;
    do {
      ++line;
      left = right = "(end)";
      std::getline(a, left), std::getline(b, right);
    } while (left == right && a && b);
    BOOST_ERROR(path << ":" << line << "\n  recorded: " << left << "\n  now:      " << right);
  }
  return now;
}

}  // namespace signalbox::tests
