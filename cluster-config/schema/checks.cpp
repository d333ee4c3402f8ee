#include "cluster-config/schema/checks.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "cluster-config/schema/address.hpp"
#include "messages/base/nearest.hpp"

namespace signalbox::config {
namespace {

class Checker {
 public:
  Checker(const Config& config, std::vector<Mistake>& mistakes) : c_(config), mistakes_(mistakes) {}

  void run() {
    unique_names();
    domains();
    links();
    engines();
    processes();
    proxies();
    roles();
    addresses();
    security();
  }

 private:
  void mistake(Place place, std::string what, std::string hint = {}) {
    mistakes_.push_back({place, std::move(what), std::move(hint)});
  }

  template <class Rows, class NameOf>
  void unique(const Rows& rows, std::string_view noun, NameOf name_of_row) {
    std::map<std::string, int> seen;
    for (const auto& row : rows) {
      const std::string name = name_of_row(row);
      const auto [first, fresh] = seen.emplace(name, row.place.line);
      if (!fresh && !name.empty())
        mistake(row.place, fmt::format("a second {} '{}'", noun, name),
                fmt::format("the first is in line {}", first->second));
    }
  }
  void unique_names() {
    unique(c_.clusters, "cluster", [](const Cluster& row) { return row.name.str(); });
    unique(c_.engines, "engine", [](const Engine& row) { return row.name.str(); });
    unique(c_.profiles, "profile", [](const Profile& row) { return row.name; });
    unique(c_.links, "link", [](const Link& row) { return fmt::format("{} to {}", row.from, row.to); });
    // Forwarders and the other processes share one set of names: keys and topics carry them.
    struct Named {
      std::string id;
      Place place;
    };
    std::vector<Named> all;
    for (const Bus& bus : c_.buses) all.push_back({bus.id.str(), bus.place});
    for (const Process& process : c_.processes) all.push_back({process.id.str(), process.place});
    unique(all, "process", [](const Named& row) { return row.id; });
    for (const Named& named : all)
      if (named.id == launcher_id || named.id == tool_id)
        mistake(named.place,
                fmt::format("the name '{}' is that of Signalbox's own commands on the bus", named.id),
                "give the process another id");
    // `signalbox up` runs simulated engines under their names, beside the processes.
    for (const Engine& engine : c_.engines) {
      if (!engine.simulated) continue;
      const std::string& name = engine.name.str();
      const auto same = std::ranges::find(all, name, &Named::id);
      if (same != all.end() || name == launcher_id)
        mistake(engine.place,
                fmt::format("the simulated engine '{}' has the name of {}", name,
                            name == launcher_id ? "the launcher"
                                                : fmt::format("the process in line {}", same->place.line)),
                "give it another name");
    }
  }

  template <class Rows, class NameOf>
  void known(Place place, std::string_view noun, std::string_view name, const Rows& rows,
             NameOf name_of_row) {
    std::vector<std::string_view> names;
    for (const auto& row : rows) names.push_back(name_of_row(row));
    if (name.empty() || std::ranges::find(names, name) != names.end()) return;
    mistake(place, fmt::format("there is no {} '{}'", noun, name), name_hint(name, names));
  }
  void known_cluster(Place place, const ClusterName& name) {
    known(place, "cluster", name.str(), c_.clusters,
          [](const Cluster& row) -> std::string_view { return row.name.str(); });
  }

  /// A rack lies in one cluster, a region in one zone: domains are nested.
  void domains() {
    if (c_.clusters.empty())
      mistake({1, 1}, "there is no cluster", "add a [[cluster]] with name, region and zone");
    std::map<DomainName, std::string> zone_of;
    for (const Cluster& cluster : c_.clusters) {
      const auto [first, fresh] = zone_of.emplace(cluster.region, cluster.zone.str());
      if (!fresh && first->second != cluster.zone.str())
        mistake(cluster.place,
                fmt::format("region '{}' lies in zone '{}' and in '{}'", cluster.region, first->second,
                            cluster.zone),
                "a region lies in one zone");
    }
    std::map<DomainName, std::string> cluster_of;
    for (const Engine& engine : c_.engines) {
      const auto [first, fresh] = cluster_of.emplace(engine.rack, engine.cluster.str());
      if (!fresh && first->second != engine.cluster.str())
        mistake(engine.place,
                fmt::format("rack '{}' lies in cluster '{}' and in '{}'", engine.rack, first->second,
                            engine.cluster),
                "a rack lies in one cluster; give racks of different clusters different names");
    }
  }

  void links() {
    for (const Link& link : c_.links) {
      known_cluster(link.place, link.from);
      known_cluster(link.place, link.to);
      if (link.from == link.to)
        mistake(link.place, fmt::format("a link from '{}' to itself", link.from),
                "leave it out; within a cluster it is 0");
    }
  }

  void engines() {
    if (c_.engines.empty()) mistake({1, 1}, "there is no engine", "add an [[engine]]");
    for (const Engine& engine : c_.engines) {
      known_cluster(engine.place, engine.cluster);
      known(engine.place, "profile", engine.profile, c_.profiles,
            [](const Profile& row) -> std::string_view { return row.name; });
      if (engine.simulated && engine.kind != EngineKind::sim)
        mistake(engine.place,
                fmt::format("engine '{}' is simulated, but of kind {}", engine.name, name_of(engine.kind)),
                "write kind = \"sim\"");
      if (engine.simulated && !engine.url.empty() && !is_loopback(engine.url))
        mistake(engine.place, fmt::format("engine '{}' is simulated at {}", engine.name, engine.url),
                "simulated engines listen on loopback");
    }
  }

  void processes() {
    for (const Process& process : c_.processes) {
      known_cluster(process.place, process.cluster);
      const bool router = process.role == "cluster-router", proxy = process.role == "engine-proxy";
      if (router && process.cluster.empty())
        mistake(process.place, fmt::format("router '{}' has no cluster", process.id),
                "write cluster = \"NAME\"");
      if (!router && !process.listen.empty())
        mistake(process.place,
                fmt::format("'{}' has role {} and serves no clients", process.id, process.role),
                "only a cluster-router has 'listen'");
      if (proxy && process.cluster.empty() && process.engines.empty())
        mistake(process.place, fmt::format("engine-proxy '{}' has no engines", process.id),
                "write cluster = \"NAME\" for all of a cluster's, or engines = [...]");
      if (!proxy && !process.engines.empty())
        mistake(process.place, fmt::format("'{}' has role {} and reads no engines", process.id, process.role),
                "only an engine-proxy has 'engines'");
      for (const EngineName& engine : process.engines)
        known(process.place, "engine", engine.str(), c_.engines,
              [](const Engine& row) -> std::string_view { return row.name.str(); });
    }
  }

  /// Each engine is read by exactly one proxy.
  void proxies() {
    std::map<EngineName, std::set<std::string>> readers;
    for (const Process& process : c_.processes)
      if (process.role == "engine-proxy")
        for (const EngineName& engine : process.engines) readers[engine].insert(process.id.str());
    for (const Engine& engine : c_.engines) {
      const std::set<std::string>& ids = readers[engine.name];
      if (ids.empty())
        mistake(engine.place, fmt::format("no engine-proxy reads engine '{}'", engine.name),
                fmt::format("add a [[process]] with role = \"engine-proxy\" and cluster = \"{}\"",
                            engine.cluster));
      if (ids.size() > 1)
        mistake(engine.place, fmt::format("engine '{}' is read by {}", engine.name, fmt::join(ids, " and ")),
                "an engine has one engine-proxy");
    }
  }

  std::size_t count(std::string_view role) const {
    return static_cast<std::size_t>(std::ranges::count(c_.processes, role, &Process::role));
  }
  void roles() {
    if (c_.buses.empty()) mistake({1, 1}, "there is no bus", "add a [[bus]] with id, publish and subscribe");
    if (count("") > 0)
      return;  // a role was not understood, and that was said: it may be the one that is missing
    for (const std::string_view role : {"cluster-router", "health-monitor", "policy-keeper"})
      if (count(role) == 0)
        mistake({1, 1}, fmt::format("there is no {}", role),
                fmt::format("add a [[process]] with role = \"{}\"", role));
    const bool feedback = c_.control.kind == ControlKind::feedback;
    const std::string_view wanted = feedback ? "feedback-balancer" : "global-optimizer";
    const std::string_view other = feedback ? "global-optimizer" : "feedback-balancer";
    if (count(wanted) == 0)
      mistake({1, 1}, fmt::format("control.kind is {}, and there is no {}", name_of(c_.control.kind), wanted),
              fmt::format("add a [[process]] with role = \"{}\"", wanted));
    for (const Process& process : c_.processes)
      if (process.role == other)
        mistake(process.place,
                fmt::format("control.kind is {}; a {} would fight it", name_of(c_.control.kind), other),
                "change control.kind, or leave this process out");
  }

  struct Use {
    std::string_view address;
    std::string owner;
    Place place;
  };
  /// Addresses that a process of ours opens.
  std::vector<Use> opened() const {
    std::vector<Use> out;
    const auto add = [&out](std::string_view address, std::string owner, Place place) {
      if (!address.empty()) out.push_back({address, std::move(owner), place});
    };
    for (const Bus& bus : c_.buses) {
      const auto endpoint = [](const std::string& text) -> std::string_view {
        return text.starts_with("ipc://") ? std::string_view(text) : host_and_port(text);
      };
      add(endpoint(bus.publish), fmt::format("{} (publish)", bus.id), bus.place);
      add(endpoint(bus.subscribe), fmt::format("{} (subscribe)", bus.id), bus.place);
      add(bus.operator_listen, fmt::format("{} (operator)", bus.id), bus.place);
    }
    for (const Process& process : c_.processes) {
      add(process.listen, fmt::format("{} (listen)", process.id), process.place);
      add(process.operator_listen, fmt::format("{} (operator)", process.id), process.place);
    }
    return out;
  }
  void addresses() {
    std::vector<Use> uses = opened();
    for (const Engine& engine : c_.engines)
      if (!engine.url.empty())
        uses.push_back({host_and_port(engine.url), fmt::format("engine {}", engine.name), engine.place});
    std::map<std::string_view, std::string> owner_of;
    for (const Use& use : uses) {
      const auto [first, fresh] = owner_of.emplace(use.address, use.owner);
      if (!fresh)
        mistake(use.place, fmt::format("{} has the address {} of {}", use.owner, use.address, first->second),
                "give each its own address");
    }
    const auto operator_listen = [this](const ProcessName& id, const std::string& address, Place place) {
      if (!address.empty() && !is_loopback(address))
        mistake(place, fmt::format("the operator port of '{}' is open at {}", id, address),
                "nobody has to prove who they are there: use a loopback address");
    };
    for (const Bus& bus : c_.buses) operator_listen(bus.id, bus.operator_listen, bus.place);
    for (const Process& process : c_.processes)
      operator_listen(process.id, process.operator_listen, process.place);
  }

  void security() {
    if (c_.security == Security::curve) return;
    for (const Bus& bus : c_.buses)
      for (const std::string& endpoint : {bus.publish, bus.subscribe})
        if (endpoint.starts_with("tcp://") && !is_loopback(endpoint))
          mistake(bus.place, fmt::format("bus '{}' is open at {} with security = \"none\"", bus.id, endpoint),
                  "use security = \"curve\", a loopback address or ipc");
  }

  const Config& c_;
  std::vector<Mistake>& mistakes_;
};

}  // namespace

void check_config(const Config& config, std::vector<Mistake>& mistakes) { Checker(config, mistakes).run(); }

}  // namespace signalbox::config
