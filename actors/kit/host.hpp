// The CAF shell of every role: it delivers to a machine and performs what the machine answers. No decision lives here.
//
// Supervision: whatever a machine throws ends that machine, not its actor. The reason is logged and counted, a fresh
// machine takes its place under the same address after a pause that doubles, and the process gives up when too many
// fail in a row, so that the launcher's own backoff takes over.
#pragma once

#include <caf/all.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/kit/board.hpp"
#include "actors/kit/ordered_actor.hpp"
#include "actors/kit/ports.hpp"

// What hosts are sent stays within the process: it is never serialised.
template <class T>
struct caf::allowed_unsafe_message_type<std::shared_ptr<const T>> : std::true_type {};

namespace signalbox::kit {

using StartAtom = caf::atom_constant<caf::atom("sbx-start")>;
using WakeAtom = caf::atom_constant<caf::atom("sbx-wake")>;

template <class M>
using InputPtr = std::shared_ptr<const typename M::Input>;

/// Tells a hosted machine something of its own; thread-safe, and harmless after the actor has ended.
template <class M>
class Teller {
 public:
  explicit Teller(const caf::actor& actor) : actor_(caf::actor_cast<caf::weak_actor_ptr>(actor)) {}
  void operator()(typename M::Input input) const {
    if (const auto actor = actor_.lock())
      caf::anon_send(caf::actor_cast<caf::actor>(actor),
                     InputPtr<M>(std::make_shared<const typename M::Input>(std::move(input))));
  }

 private:
  caf::weak_actor_ptr actor_;
};

template <Machine M>
struct HostOptions {
  std::string name;  ///< for logs and the board
  std::function<M()> make;
  /// Carries out one command; runs in the actor and must not block.
  std::function<void(const typename M::Command&, const Teller<M>&)> perform;
  std::shared_ptr<Ports> ports;
  std::shared_ptr<Board> board;
  std::function<void(const std::string& reason)> give_up;  ///< the process shall end
};

template <Machine M>
class Host : public OrderedActor {
 public:
  static constexpr std::uint32_t most_failures = 8;  ///< in a row, each within `calm` of the one before
  static constexpr Duration calm = 60s;

  Host(caf::actor_config& config, HostOptions<M> options)
      : OrderedActor(config), options_(std::move(options)), machine_(options_.make()) {
    const Step step(this);
  }
  ~Host() override { const Step step(this); }

  caf::behavior make_behavior() override {
    return {
        [this](StartAtom) {
          const Step step(this);
          started_ = true;
          act([this](auto& e) { machine_->on_wake(time(), e); });
          for (const auto& early : std::exchange(early_, {}))
            act([&](auto& e) { machine_->on(*early, time(), e); });
        },
        [this](const schema::DeliveryPtr& delivery) {
          const Step step(this);
          if (!started_)
            early_.push_back(delivery);
          else if (machine_)
            act([&](auto& e) { machine_->on(*delivery, time(), e); });
        },
        [this](const InputPtr<M>& input) {
          const Step step(this);
          if (machine_) act([&](auto& e) { machine_->on(*input, time(), e); });
        },
        [this](WakeAtom, std::uint64_t generation) {
          const Step step(this);
          if (generation != generation_) return;
          wake_.reset();
          if (!machine_) machine_.emplace(options_.make());
          act([this](auto& e) { machine_->on_wake(time(), e); });
        },
    };
  }

  /// For tests, between two steps of the scheduler.
  const M& machine() const { return *machine_; }

 private:
  /// CAF's clock is the monotonic one, or a test's.
  Instant time() {
    return instant_at(std::chrono::duration_cast<Duration>(clock().now().time_since_epoch()));
  }

  template <class F>
  void act(F&& deliver) {
    try {
      Effects<typename M::Command> effects;
      deliver(effects);
      perform(effects);
      if (options_.board) options_.board->set(options_.name, machine_->view().standing);
    } catch (const std::exception& error) {
      restart(error.what());
    } catch (...) {
      restart("an exception of an unknown type");
    }
  }

  void perform(const Effects<typename M::Command>& effects) {
    for (const auto& what : effects.persist)
      if (const auto kept = options_.ports->persist(what); !kept) {
        options_.ports->log({schema::Severity::critical, "not_persisted", kept.error().text()});
        Effects<typename M::Command> instead;
        machine_->on_persist_failed(what, time(), instead);
        instead.persist.clear();
        return perform(instead);
      }
    for (const auto& message : effects.publish) options_.ports->publish(message);
    for (const auto& command : effects.commands)
      options_.perform(command, Teller<M>(caf::actor_cast<caf::actor>(this)));
    for (const auto& line : effects.log) options_.ports->log(line);
    if (effects.wake) wake_at(*effects.wake);
  }

  void wake_at(Instant when) {
    if (wake_ == when) return;
    wake_ = when;
    const Duration wait = std::max(when - time(), Duration::zero());
    this->delayed_send(this, std::min<Duration>(wait, 24h), WakeAtom::value, ++generation_);
  }

  void restart(const std::string& reason) {
    machine_.reset();
    const Instant now = time();
    failures_ = last_failure_ && now - *last_failure_ < calm ? failures_ + 1 : 1;
    last_failure_ = now;
    if (options_.board) options_.board->note_restart();
    options_.ports->log({schema::Severity::critical, "actor_failed",
                         options_.name + ": " + reason + "; it is started again, failure " +
                             std::to_string(failures_) + " in a row"});
    if (failures_ >= most_failures) {
      if (options_.give_up) options_.give_up(options_.name + " fails again and again: " + reason);
      return this->quit();
    }
    wake_.reset();
    wake_at(now + 100ms * (1 << (failures_ - 1)));
  }

  HostOptions<M> options_;
  std::optional<M> machine_;
  bool started_ = false;
  std::vector<schema::DeliveryPtr> early_;
  std::optional<Instant> wake_;
  std::uint64_t generation_ = 0;  ///< of the newest wish to be woken
  std::uint32_t failures_ = 0;
  std::optional<Instant> last_failure_;
};

}  // namespace signalbox::kit
