#include "tests/tools/simulate/control/planted.hpp"

#include <algorithm>

#include "cluster-config/policy/compiled.hpp"

namespace signalbox::simulate::control {
namespace {

bool is(const ProcessPlace& place, std::string_view role) { return place.name.str().starts_with(role); }

template <class T, class F>
void each(std::vector<schema::Message>& messages, F&& change) {
  for (schema::Message& message : messages)
    if (T* one = std::get_if<T>(&message)) change(*one);
}
template <class T, class F>
void drop(std::vector<schema::Message>& messages, F&& which) {
  std::erase_if(messages, [&](const schema::Message& message) {
    const T* one = std::get_if<T>(&message);
    return one != nullptr && which(*one);
  });
}

/// A router goes back to what it routed by when it hears an older snapshot.
class OlderSnapshots : public Planted {
  using Planted::Planted;
  std::map<ProcessName, std::shared_ptr<const routing::View>> first_;
  std::set<ProcessName> back_;
  bool let_in(const ProcessPlace& to, const schema::Delivery& d, schema::Unwelcome why) override {
    if (is(to, "router") && std::holds_alternative<schema::RoutingSnapshot>(d.message)) back_.insert(to.name);
    return Planted::let_in(to, d, why);
  }
  void adopt(const ProcessPlace& router, std::shared_ptr<const routing::View>& view) override {
    if (view->snapshot && !first_.contains(router.name)) first_[router.name] = view;
    if (back_.erase(router.name) > 0 && first_.contains(router.name)) view = first_[router.name];
    Planted::adopt(router, view);
  }
};

/// Repetitions are heard as news.
class Repetitions : public Planted {
  using Planted::Planted;
  bool let_in(const ProcessPlace&, const schema::Delivery&, schema::Unwelcome why) override {
    return why == schema::Unwelcome::duplicate;
  }
};

/// Words of dead incarnations count.
class TheDeadSpeak : public Planted {
  using Planted::Planted;
  bool let_in(const ProcessPlace&, const schema::Delivery&, schema::Unwelcome why) override {
    return why == schema::Unwelcome::superseded || why == schema::Unwelcome::overtaken ||
           why == schema::Unwelcome::stale;
  }
};

/// An optimizer leads before its term is durable.
class TermNotKept : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace& of, std::vector<kit::Persist>& keep,
              std::vector<schema::Message>&) override {
    if (is(of, "optimizer")) std::erase_if(keep, [](const auto& file) { return file.name == "term"; });
  }
};

/// An optimizer does not say which reports it knew.
class NoCovers : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace& of, std::vector<kit::Persist>&,
              std::vector<schema::Message>& say) override {
    if (is(of, "optimizer")) each<schema::RoutingSnapshot>(say, [](auto& s) { s.covers.clear(); });
  }
};

/// An optimizer says that it knew the report that is still to come.
class CoversTooMuch : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace& of, std::vector<kit::Persist>&,
              std::vector<schema::Message>& say) override {
    if (is(of, "optimizer"))
      each<schema::RoutingSnapshot>(say, [](auto& s) {
        for (auto& row : s.covers) row.report += 3;
      });
  }
};

/// A router's budget for retries knows no end.
class NoBudget : public Planted {
  using Planted::Planted;
  void adopt(const ProcessPlace& router, std::shared_ptr<const routing::View>& view) override {
    Planted::adopt(router, view);
    auto policy = std::make_shared<policy::CompiledPolicy>(*view->policy);
    policy->retry.budget_burst = 1000000;
    policy->retry.budget_ratio = 10;
    auto changed = std::make_shared<routing::View>(*view);
    changed->policy = std::move(policy);
    view = std::move(changed);
  }
};

/// A router says that a plan is in force that it has yet to take.
class FalseReceipts : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace& of, std::vector<kit::Persist>&,
              std::vector<schema::Message>& say) override {
    if (is(of, "router"))
      each<schema::SnapshotReceipt>(say, [](auto& receipt) { ++receipt.in_force.sequence; });
  }
};

/// Silent engines are taken to say what they said last: the leader believes that it hears the whole fleet.
class OldSignals : public Planted {
  using Planted::Planted;
  std::map<EngineName, schema::EngineSignal> last_;
  std::size_t turn_ = 0;
  bool deliver(const ProcessPlace& to, schema::Delivery& d) override {
    const bool passes = Planted::deliver(to, d);
    if (!is(to, "optimizer")) return passes;
    if (const auto* signal = std::get_if<schema::EngineSignal>(&d.message)) last_[signal->engine] = *signal;
    if (!std::holds_alternative<schema::Beat>(d.message) || last_.empty()) return passes;
    auto next = last_.begin();
    std::advance(next, static_cast<std::ptrdiff_t>(++turn_ % last_.size()));
    d.message = next->second;
    return passes;
  }
};

/// A monitor that hears of no engine declares all of them gone.
class NoPanicRule : public Planted {
  using Planted::Planted;
  std::map<ProcessName, Instant> heard_;
  bool deliver(const ProcessPlace& to, schema::Delivery& d) override {
    if (is(to, "monitor") && std::holds_alternative<schema::EngineSignal>(d.message)) heard_[to.name] = now();
    return Planted::deliver(to, d);
  }
  void answer(const ProcessPlace& of, std::vector<kit::Persist>&,
              std::vector<schema::Message>& say) override {
    if (!is(of, "monitor") || !heard_.contains(of.name) || now() - heard_[of.name] < 1s) return;
    each<schema::HealthVerdict>(say, [](auto& verdict) {
      verdict.state = HealthState::gone;
      verdict.isolated = false;
      verdict.capacity_factor = 0;
    });
  }
};

/// Plans are published without asking the verifier.
class NotVerified : public Planted {
  using Planted::Planted;
  Status verified(const ProcessPlace&, const std::vector<schema::RoutingSnapshot>&,
                  const global_optimizer::Facts&, Status) override {
    return {};
  }
};

/// A leader is deaf to others' terms.
class StaysLeader : public Planted {
  using Planted::Planted;
  std::set<ProcessName> leaders_;
  bool deliver(const ProcessPlace& to, schema::Delivery& d) override {
    const bool passes = Planted::deliver(to, d);
    if (!leaders_.contains(to.name)) return passes;
    if (const auto* beat = std::get_if<schema::Beat>(&d.message)) return beat->term.optimizer == to.name;
    if (const auto* alive = std::get_if<schema::KeepAlive>(&d.message))
      return alive->version.term.optimizer == to.name;
    if (const auto* receipt = std::get_if<schema::SnapshotReceipt>(&d.message))
      return receipt->in_force.term.optimizer == to.name;
    return passes && !std::holds_alternative<schema::RoutingSnapshot>(d.message);
  }
  void answer(const ProcessPlace& of, std::vector<kit::Persist>&,
              std::vector<schema::Message>& say) override {
    each<schema::KeepAlive>(say, [&](auto&) { leaders_.insert(of.name); });
  }
  void started(ProcessPlace& process) override {
    leaders_.erase(process.name);
    Planted::started(process);
  }
};

/// Every third plan has the sequence of the one before.
class SequenceAgain : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace&, std::vector<kit::Persist>&, std::vector<schema::Message>& say) override {
    each<schema::RoutingSnapshot>(say, [](auto& s) {
      if (s.version.sequence % 3 == 0) --s.version.sequence;
    });
  }
};

/// One cluster is forgotten once a while has passed.
class ForgetsACluster : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace&, std::vector<kit::Persist>&, std::vector<schema::Message>& say) override {
    drop<schema::RoutingSnapshot>(
        say, [](const auto& s) { return s.cluster.str() == "west" && s.version.sequence > 5; });
  }
};

/// One cluster is given another's weights.
class SwapsClusters : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace&, std::vector<kit::Persist>&, std::vector<schema::Message>& say) override {
    std::vector<schema::RoutingSnapshot*> all;
    each<schema::RoutingSnapshot>(say, [&](auto& s) { all.push_back(&s); });
    if (all.size() == 2) std::swap(all[0]->weights, all[1]->weights);
  }
};

/// An optimizer does not hear of the dead.
class DeafToVerdicts : public Planted {
  using Planted::Planted;
  bool deliver(const ProcessPlace& to, schema::Delivery& d) override {
    const bool passes = Planted::deliver(to, d);
    return passes && !(is(to, "optimizer") && std::holds_alternative<schema::HealthVerdict>(d.message));
  }
};

/// A process that is started again goes on as if it were the old one.
class SameLife : public Planted {
  using Planted::Planted;
  std::map<ProcessName, Incarnation> first_;
  void started(ProcessPlace& process) override {
    process.incarnation = first_.try_emplace(process.name, process.incarnation).first->second;
    Planted::started(process);
  }
};

/// A new leader takes a term that is far ahead.
class TermJump : public Planted {
  using Planted::Planted;
  void answer(const ProcessPlace& of, std::vector<kit::Persist>&,
              std::vector<schema::Message>& say) override {
    if (!is(of, "optimizer-2")) return;
    each<schema::RoutingSnapshot>(say, [](auto& s) { s.version.term.counter += 5000; });
  }
};

/// A leader that was replaced goes on to say its last plan.
class OldLeaderSpeaks : public Planted {
  using Planted::Planted;
  std::map<ProcessName, std::vector<schema::Message>> last_;
  void answer(const ProcessPlace& of, std::vector<kit::Persist>&,
              std::vector<schema::Message>& say) override {
    if (!is(of, "optimizer")) return;
    std::vector<schema::Message> plans;
    each<schema::RoutingSnapshot>(say, [&](auto& s) { plans.push_back(s); });
    if (!plans.empty())
      last_[of.name] = std::move(plans);
    else if (last_.contains(of.name) && now() - last_at_ > 5s)
      say = last_[of.name], last_at_ = now();
  }
  Instant last_at_ = instant_at(0s);
};

template <class T>
Bug bug(std::string_view name, std::string_view what, std::uint64_t seed = 1) {
  return {name, what, [](Checker& checker) { return std::make_unique<T>(checker); }, seed};
}

}  // namespace

std::span<const Bug> planted_bugs() {
  static const std::vector<Bug> bugs{
      bug<OlderSnapshots>("older_snapshots", "a router goes back when it hears an older snapshot", 6),
      bug<Repetitions>("repetitions", "repetitions are heard as news", 7),
      bug<TheDeadSpeak>("the_dead_speak", "what is overtaken, superseded or stale is heard as news", 4),
      bug<TermNotKept>("term_not_kept", "an optimizer leads before its term is durable"),
      bug<NoCovers>("no_covers", "plans do not say which reports they knew: penalties count twice"),
      bug<CoversTooMuch>("covers_too_much", "plans say that they knew reports still to come"),
      bug<NoBudget>("no_budget", "retries have no budget", 9),
      bug<FalseReceipts>("false_receipts", "a router says that a plan is in force that it has yet to take"),
      bug<OldSignals>("old_signals", "silent engines count as heard: a leader plans on half of the fleet"),
      bug<NoPanicRule>("no_panic_rule", "a monitor that hears of no engine declares all gone", 16),
      bug<NotVerified>("not_verified", "plans are published without asking the verifier"),
      bug<StaysLeader>("stays_leader", "a leader is deaf to others' terms"),
      bug<SequenceAgain>("sequence_again", "two plans have one sequence"),
      bug<ForgetsACluster>("forgets_a_cluster", "one cluster gets no more plans"),
      bug<SwapsClusters>("swaps_clusters", "a cluster gets another's weights"),
      bug<DeafToVerdicts>("deaf_to_verdicts", "an optimizer does not hear of the dead", 2),
      bug<SameLife>("same_life", "a process that is started again keeps its incarnation", 5),
      bug<TermJump>("term_jump", "a new leader's term is far ahead", 20),
      bug<OldLeaderSpeaks>("old_leader_speaks", "an optimizer says its last plan again"),
  };
  return bugs;
}

}  // namespace signalbox::simulate::control
