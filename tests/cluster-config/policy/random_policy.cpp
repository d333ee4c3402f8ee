#include "tests/cluster-config/policy/random_policy.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace signalbox::policy::test {
namespace {

template <class T>
const T& pick(const std::vector<T>& items, Rng& rng) {
  return items[rng.below(items.size())];
}
PlainVersion random_version(Rng& rng) {
  return {static_cast<int>(rng.below(3)), static_cast<int>(rng.below(12))};
}
bool not_after(PlainVersion a, PlainVersion b) {
  return a.major != b.major ? a.major < b.major : a.minor <= b.minor;
}
std::string written(PlainVersion v) { return fmt::format("{}.{}", v.major, v.minor); }

const std::vector<std::string> tenant_patterns{"*", "a*", "ab*",      "abc",   "ab",
                                               "b", "b*", "\"3com\"", "c:d/e", "x_*"};
const std::vector<std::string> tenants{"a",    "ab",    "abc", "abcd", "b", "bb",
                                       "3com", "c:d/e", "x_",  "x_1",  "z", ""};
const std::vector<std::string> levels{"sheddable", "standard", "critical"};

std::size_t level(const std::string& criticality) {
  return static_cast<std::size_t>(std::ranges::find(levels, criticality) - levels.begin());
}

std::string bare(std::string pattern) {
  std::erase(pattern, '"');
  return pattern;
}
bool glob(const std::string& pattern, const std::string& text) {
  if (pattern.empty() || pattern.back() != '*') return pattern == text;
  const std::string beginning = pattern.substr(0, pattern.size() - 1);
  return text.size() >= beginning.size() && text.compare(0, beginning.size(), beginning) == 0;
}

int number_in(const std::string& digits) {
  int value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

PlainVersion read_version(const std::string& text) {
  const std::size_t dot = text.find('.');
  return {text[0] - '0', dot == std::string::npos ? 0 : number_in(text.substr(dot + 1))};
}

bool takes(const PlainClass& c, const PlainRequest& request, PlainVersion version) {
  if (c.model != request.model) return false;
  if (std::ranges::none_of(c.tenants, [&](const std::string& p) { return glob(bare(p), request.tenant); }))
    return false;
  if (!c.asked.empty() && !std::ranges::count(c.asked, request.asked.empty() ? "none" : request.asked))
    return false;
  if (c.tokens && (request.tokens < c.tokens->first || request.tokens > c.tokens->second)) return false;
  const bool from = not_after(c.version, version), to = not_after(version, c.version);
  if (c.op == "=") return from && to;
  if (c.op == ">=") return from;
  if (c.op == "<=") return to;
  return c.op != ".." || (from && not_after(version, c.version_high));
}

std::string gap(Rng& rng) {
  switch (rng.below(6)) {
    case 0: return "\n    ";
    case 1: return "  # why: not\n  ";
    case 2: return "\n\n  # a line\n  ";
    default: return rng.chance(0.5) ? " " : "   ";
  }
}

template <class Items>
std::string list(const Items& items, Rng& rng) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : rng.chance(0.5) ? ", " : ",") + item;
  return out;
}

std::string class_text(const PlainClass& c, Rng& rng) {
  std::vector<std::string> parts{fmt::format("tenants {}", list(c.tenants, rng)),
                                 fmt::format("criticality {}", c.criticality)};
  std::string model = "model " + c.model;
  if (c.op == "..")
    model += fmt::format(" {}..{}", written(c.version), written(c.version_high));
  else if (!c.op.empty())
    model += fmt::format(" {} {}", c.op, written(c.version));
  parts.push_back(model);
  if (!c.asked.empty()) parts.push_back("asked " + list(c.asked, rng));
  if (c.tokens) parts.push_back(fmt::format("tokens {}..{} tok", c.tokens->first, c.tokens->second));
  parts.push_back(c.zones.empty() ? "residency any"
                                  : fmt::format("residency zone {}{}", list(c.zones, rng),
                                                rng.chance(0.5) ? " strict" : ""));
  if (rng.chance(0.3)) parts.push_back("floor 7%");
  if (rng.chance(0.3)) parts.push_back(rng.chance(0.5) ? "weigh ttft 2" : "weigh tpot 0.5 ttft 3.25");
  if (rng.chance(0.3)) parts.push_back("demand 0..1200.5 tok/s");
  for (std::size_t i = parts.size(); i > 1; --i) std::swap(parts[i - 1], parts[rng.below(i)]);
  std::string out = fmt::format("class {} {{", c.name);
  for (const std::string& part : parts) out += gap(rng) + part;
  return out + gap(rng) + "}\n";
}

}  // namespace

PlainPolicy random_policy(Rng& rng) {
  PlainPolicy policy;
  for (const char* name : {"m", "org/n:7b", "\"o#1\""}) {
    PlainVersion low = random_version(rng), high = random_version(rng);
    if (!not_after(low, high)) std::swap(low, high);
    if (policy.models.empty() || rng.chance(0.7)) policy.models.push_back({name, low, high});
  }
  const std::size_t count = 1 + rng.below(6);
  for (std::size_t i = 0; i < count; ++i) {
    PlainClass c;
    c.name = fmt::format("c{}", i);
    for (const std::string& pattern : tenant_patterns)
      if (rng.chance(0.25)) c.tenants.push_back(pattern);
    if (c.tenants.empty()) c.tenants.push_back("*");
    const PlainModel& model = pick(policy.models, rng);
    c.model = model.name;
    c.criticality = pick(levels, rng);
    // Bounds are drawn from the model's own, so that the class asks for versions that exist.
    const std::vector<std::string> ops{"", "", "=", ">=", "<=", ".."};
    c.op = pick(ops, rng);
    c.version = c.op == "=" || c.op == ">=" ? model.high : model.low;
    c.version_high = model.high;
    if (rng.chance(0.3))
      for (const char* name : {"sheddable", "standard", "critical", "none"})
        if (rng.chance(0.5)) c.asked.push_back(name);
    if (rng.chance(0.3))
      c.tokens = std::pair(static_cast<int>(rng.below(50)), 50 + static_cast<int>(rng.below(50)));
    if (rng.chance(0.4))
      c.zones = rng.chance(0.5) ? std::vector<std::string>{"EU"} : std::vector<std::string>{"EU", "US"};
    policy.classes.push_back(std::move(c));
  }
  policy.otherwise = rng.chance(0.5) ? 403 : 429;
  return policy;
}

PlainRequest random_request(const PlainPolicy& policy, Rng& rng) {
  PlainRequest request;
  request.tenant = pick(tenants, rng);
  request.model = rng.chance(0.1) ? "unheard-of" : pick(policy.models, rng).name;
  if (rng.chance(0.5)) request.version = written(random_version(rng));
  if (rng.chance(0.1)) request.version = "2";
  if (rng.chance(0.7)) request.asked = pick(levels, rng);
  request.tokens = static_cast<int>(rng.below(110));
  return request;
}

std::string text_of(const PlainPolicy& policy, Rng& rng) {
  std::string out = "# a policy\npolicy random version 7 owner \"some one\"\n";
  out +=
      "topology { zone EU { region eu-west }" + gap(rng) + "zone US { region us-east,us-west } }\nmodels {";
  for (const PlainModel& model : policy.models)
    out += fmt::format("{}{} versions {}..{}{}", gap(rng), model.name, written(model.low),
                       written(model.high), rng.chance(0.5) ? " ;" : "");
  out += gap(rng) + "}\n";
  for (const PlainClass& c : policy.classes) out += class_text(c, rng);
  out += fmt::format("otherwise{}reject {}\n", gap(rng), policy.otherwise);
  if (rng.chance(0.5))
    out +=
        "limits { weight(engine) <= 55% load( engine )<=0.7*capacity # hot\n in_flight(engine) <= "
        "33\nweight(region)<=0.9 weight( zone ) <= 95%" +
        gap(rng) + "churn L1 <= 20% per snapshot, 0.5 per 2min except from engine gone|draining" + gap(rng) +
        "spread c0>=3 engines,2 racks\nsurvive 1 region for criticality >= standard\n survive 1 rack for "
        "criticality >= critical }\n";
  if (rng.chance(0.5)) out += "cache groups 12.5%" + gap(rng) + "of memory\n";
  if (rng.chance(0.5)) out += "retry burst 7" + gap(rng) + "ratio 12.5% on connect, 503 not on nothing\n";
  if (rng.chance(0.5))
    out +=
        "stale signal soft 70ms" + gap(rng) + "snapshot warn 1.5s degrade 2min to least_loaded never stop\n";
  if (rng.chance(0.5)) out += "shed order sheddable cost sheddable 12.25s floor standard 0.7%, critical 7%\n";
  if (rng.chance(0.5)) out += "penalty connect 0.07 slow 0.999 half_life 3s\nrouting draws 8 eta 0.1\n";
  if (rng.chance(0.5))
    out += "objective minimize { ttft weight 1.1 in [0.1,3]" + gap(rng) + "tpot weight 0.3 in [0,1] }\n";
  return out + (rng.chance(0.5) ? "# the end\n" : "");
}

PlainAnswer answer(const PlainPolicy& policy, const PlainRequest& request) {
  const auto model = std::ranges::find(policy.models, request.model, &PlainModel::name);
  if (model == policy.models.end()) return {"reject 404", ""};
  const PlainVersion version = request.version.empty() ? model->high : read_version(request.version);
  if (!not_after(model->low, version) || !not_after(version, model->high)) return {"reject 404", ""};
  for (const PlainClass& c : policy.classes) {
    if (!takes(c, request, version)) continue;
    const bool lowered = !request.asked.empty() && level(request.asked) < level(c.criticality);
    return {c.name, lowered ? request.asked : c.criticality};
  }
  return {fmt::format("reject {}", policy.otherwise), ""};
}

}  // namespace signalbox::policy::test
