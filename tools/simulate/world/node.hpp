// Hosts a role's machine in the virtual world: delivers, wakes, and performs its effects in the order that the kit
// prescribes. The state folder is a map that outlives the machine, so that a process that is started again finds it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "actors/kit/shape/machine.hpp"
#include "tools/simulate/world/bus.hpp"
#include "tools/simulate/world/hooks.hpp"

namespace signalbox::simulate {

/// A line of the log of a process.
struct LogEntry {
  Instant at;
  ProcessName process;
  schema::Severity severity = schema::Severity::info;
  std::string event;
  std::string text;
};

/// What outlives the machines of one process.
struct ProcessPlace {
  ProcessName name;
  ClusterName cluster;
  Incarnation incarnation;
  std::map<std::string, std::string> kept;  ///< what was persisted, by name
  bool disk_full = false;                   ///< a fault: nothing can be kept
  bool paused = false;                      ///< a fault: nothing happens, but it is all remembered
  Hooks* hooks = nullptr;                   ///< may be null
  std::function<void(LogEntry)> log;
};

class AnyNode {
 public:
  virtual ~AnyNode() = default;
  /// Joins the bus and wakes the machine for the first time.
  virtual void start() = 0;
  virtual kit::Standing standing() const = 0;
  /// What was remembered while the process was paused happens now.
  virtual void resume() = 0;
};

template <kit::Machine M>
class Node;

/// Tells a machine something of its own, if it is still there.
template <kit::Machine M>
class Teller {
 public:
  explicit Teller(const std::shared_ptr<Node<M>*>& node) : node_(node) {}
  void operator()(const typename M::Input& input) const {
    if (const auto node = node_.lock()) (*node)->tell(input);
  }
  explicit operator bool() const { return !node_.expired(); }

 private:
  std::weak_ptr<Node<M>*> node_;
};

/// One machine. `act` performs a command, now or by events of the queue.
template <kit::Machine M>
class Node final : public AnyNode {
 public:
  using Act = std::function<void(const typename M::Command&, const Teller<M>&)>;

  Node(EventQueue& queue, Bus& bus, MemberId id, ProcessPlace& place, M machine, Act act)
      : queue_(queue),
        bus_(bus),
        id_(id),
        place_(place),
        machine_(std::move(machine)),
        act_(std::move(act)),
        alarm_(queue, [this] { wake(); }) {}
  ~Node() override { bus_.leave(id_); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void start() override {
    wake();
    bus_.join(id_, M::role_info().hears, [this](const schema::Delivery& delivery) {
      handle([this, delivery](auto& effects) {
        schema::Delivery heard = delivery;
        if (place_.hooks && !place_.hooks->deliver(place_, heard)) return;
        machine_.on(heard, queue_.now(), effects);
      });
    });
  }
  void tell(const typename M::Input& input) {
    handle([this, input](auto& effects) { machine_.on(input, queue_.now(), effects); });
  }
  void resume() override {
    while (!place_.paused && !missed_.empty()) {
      const Ask ask = std::move(missed_.front());
      missed_.pop_front();
      handle(ask);
    }
  }
  kit::Standing standing() const override { return machine_.view().standing; }
  const M& machine() const { return machine_; }
  Teller<M> teller() const { return Teller<M>(self_); }

 private:
  using Effects = kit::Effects<typename M::Command>;

  using Ask = std::function<void(Effects&)>;

  void wake() {
    handle([this](auto& effects) { machine_.on_wake(queue_.now(), effects); });
  }
  void handle(const Ask& ask) {
    if (place_.paused) return missed_.push_back(ask);
    Effects effects;
    ask(effects);
    if (place_.hooks) place_.hooks->answer(place_, effects.persist, effects.publish);
    perform(std::move(effects));
  }
  void perform(Effects effects) {
    for (kit::Persist& file : effects.persist) {
      if (place_.disk_full) {
        Effects instead;
        machine_.on_persist_failed(file, queue_.now(), instead);
        instead.persist.clear();
        return perform(std::move(instead));
      }
      place_.kept[file.name] = std::move(file.bytes);
    }
    for (schema::Message& message : effects.publish)
      if (const Status said = bus_.say(id_, place_.name, place_.incarnation, std::move(message)); !said)
        log({schema::Severity::critical, "bad_message", said.error().text()});
    for (const auto& command : effects.commands) act_(command, Teller<M>(self_));
    for (kit::LogLine& line : effects.log) log(std::move(line));
    if (effects.wake) alarm_.set(*effects.wake);
  }
  void log(kit::LogLine line) {
    if (place_.log)
      place_.log({queue_.now(), place_.name, line.severity, std::string(line.event), std::move(line.text)});
  }

  EventQueue& queue_;
  Bus& bus_;
  const MemberId id_;
  ProcessPlace& place_;
  M machine_;
  Act act_;
  Alarm alarm_;
  std::deque<Ask> missed_;  ///< while paused
  std::shared_ptr<Node*> self_ = std::make_shared<Node*>(this);
};

}  // namespace signalbox::simulate
