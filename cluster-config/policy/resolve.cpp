#include "cluster-config/policy/resolve.hpp"

#include <algorithm>

#include "cluster-config/policy/resolver.hpp"

namespace signalbox::policy {

void Resolver::header() {
  if (!doc_.name) return;  // the parser has said so
  out_.name = name<DomainName>(*doc_.name).str();
  if (doc_.version) {
    if (const auto v = value(*doc_.version, Dimension::count, 1, 1e12, "the version"))
      out_.version = static_cast<std::uint64_t>(*v);
  } else {
    error(doc_.name->span, "the policy has no version", "write: policy NAME version 1");
  }
  if (doc_.owner) out_.owner = doc_.owner->text;
  if (doc_.review_by) out_.review_by = doc_.review_by->text;
}

void Resolver::zones() {
  for (const ZoneDecl& decl : doc_.zones) {
    if (!first_use(zones_seen_, decl.name, "zone")) continue;
    if (out_.zones.size() == max_zones)
      return error(decl.name.span, fmt::format("more than {} zones", max_zones));
    ZoneRow row{name<DomainName>(decl.name), {}};
    for (const Word& region : decl.regions)
      if (first_use(regions_seen_, region, "region")) row.regions.push_back(name<DomainName>(region));
    out_.zones.push_back(std::move(row));
  }
}

void Resolver::models() {
  for (const ModelDecl& decl : doc_.models) {
    if (!first_use(models_seen_, decl.name, "model")) continue;
    if (out_.models.size() == max_models)
      return error(decl.name.span, fmt::format("more than {} models", max_models));
    ModelRow row{name<ModelName>(decl.name), {}};
    if (decl.low) {
      const auto low = version(*decl.low), high = version(*decl.high);
      if (low && high) row.versions = {*low, *high};
      if (low && high && *low > *high)
        error(decl.low->span, "the range of versions is empty", "write the lower version first");
    }
    out_.models.push_back(std::move(row));
  }
  if (doc_.models.empty()) missing("models", "models { NAME versions 1.0 }");
  out_.index();
}

void Resolver::objective() {
  Seen seen;
  for (const WeightUse& use : doc_.objective) {
    double* const weight = weight_of(out_.objective.weights, use.term.text);
    if (!weight) {
      not_one_of(use.term, "a term of the objective", weight_terms);
      continue;
    }
    if (!first_use(seen, use.term, "weight for")) continue;
    if (use.bounds) {
      const auto low = value(use.bounds->first, Dimension::factor, 0, 1000, "the least weight");
      const auto high = value(use.bounds->second, Dimension::factor, 0, 1000, "the greatest weight");
      if (!low || !high) continue;
      if (*low > *high) {
        error(use.bounds->first.span, "the bounds are empty", "write the lower bound first");
        continue;
      }
      *weight_of(out_.objective.low, use.term.text) = *low;
      *weight_of(out_.objective.high, use.term.text) = *high;
    }
    if (const auto v = value(use.weight, Dimension::factor, *weight_of(out_.objective.low, use.term.text),
                             *weight_of(out_.objective.high, use.term.text),
                             fmt::format("the weight of {}", use.term.text)))
      *weight = *v;
  }
}

void Resolver::shed() {
  if (!doc_.shed) return;
  const ShedDecl& decl = *doc_.shed;
  Seen costs, floors;
  for (const CriticalityValue& use : decl.costs)
    if (const auto c = criticality(use.criticality); c && first_use(costs, use.criticality, "cost of"))
      if (const auto v = value(use.value, Dimension::time, 0.001, longest_shed_cost_s, "the cost"))
        out_.shed.cost_seconds[static_cast<std::size_t>(*c)] = *v;
  for (const CriticalityValue& use : decl.floors)
    if (const auto c = criticality(use.criticality); c && first_use(floors, use.criticality, "floor of"))
      if (const auto v = value(use.value, Dimension::share, 0, 1, "the floor"))
        out_.shed.floor_share[static_cast<std::size_t>(*c)] = *v;
  const auto& cost = out_.shed.cost_seconds;
  if (!std::ranges::is_sorted(cost, std::less_equal<>{}) && !decl.costs.empty())
    error(decl.costs.front().criticality.span,
          fmt::format("refusing must cost less the less critical a request is; it costs {}, {}, {}",
                      write(cost[0], Dimension::time), write(cost[1], Dimension::time),
                      write(cost[2], Dimension::time)),
          "raise the costs from sheddable to standard to critical");
  shed_order(decl);
}

void Resolver::shed_order(const ShedDecl& decl) {
  if (!decl.order.empty()) {
    out_.shed.order.clear();
    for (std::size_t i = 0; i < decl.order.size(); ++i) {
      const auto c = criticality(decl.order[i]);
      if (!c) continue;
      if (static_cast<std::size_t>(*c) != i)
        return error(decl.order[i].span,
                     fmt::format("{} cannot be refused at this place", decl.order[i].text),
                     "the order is sheddable, standard, critical; its end may be left out");
      out_.shed.order.push_back(*c);
    }
  }
  for (const auto& [later, earlier] : decl.never_before) {
    const auto l = criticality(later), e = criticality(earlier);
    if (l && e && *l <= *e)
      error(later.span, fmt::format("{} is refused before {}, or with it", later.text, earlier.text),
            "the order is sheddable, standard, critical");
  }
}

void Resolver::otherwise() {
  if (!doc_.otherwise && doc_.otherwise_said) return;  // the parser has said why
  if (!doc_.otherwise) return missing("otherwise", "otherwise reject 403");
  const auto status = value(*doc_.otherwise, Dimension::count, 100, 599, "the status");
  if (!status) return;
  out_.otherwise_status = static_cast<std::uint16_t>(*status);
  constexpr std::array allowed{400, 403, 404, 429, 503};
  if (std::ranges::find(allowed, out_.otherwise_status) == allowed.end())
    error(doc_.otherwise->span,
          fmt::format("{} does not say that a request is refused", out_.otherwise_status),
          "use 400, 403, 404, 429 or 503");
}

// ----------------------------------------------------------------------------------------------------------------- numbers

void Resolver::limits() {
  Limits& limits = out_.limits;
  std::vector<LimitKind> seen;
  for (const LimitUse& use : doc_.limits) {
    if (std::ranges::count(seen, use.kind)) error(use.value.span, "this limit is said twice");
    seen.push_back(use.kind);
    switch (use.kind) {
      case LimitKind::engine_weight:
        limits.engine_weight_cap = share(use.value, 0.001, 1, "the weight");
        break;
      case LimitKind::rack_weight: limits.rack_weight_cap = share(use.value, 0.001, 1, "the weight"); break;
      case LimitKind::cluster_weight:
        limits.cluster_weight_cap = share(use.value, 0.001, 1, "the weight");
        break;
      case LimitKind::region_weight:
        limits.region_weight_cap = share(use.value, 0.001, 1, "the weight");
        break;
      case LimitKind::zone_weight: limits.zone_weight_cap = share(use.value, 0.001, 1, "the weight"); break;
      case LimitKind::load:
        limits.load_ceiling = share(use.value, 0.05, 0.99, "the load").value_or(limits.load_ceiling);
        break;
      case LimitKind::in_flight:
        limits.in_flight_cap =
            static_cast<std::uint32_t>(value(use.value, Dimension::count, 1, 1e6, "the number of requests")
                                           .value_or(limits.in_flight_cap));
        break;
    }
  }
  caps_nest();
}

std::optional<ClassIndex> Resolver::declared_class(const Word& word) {
  const auto index = out_.find_class(word.text);
  // A class that was not understood has its own errors.
  if (!index &&
      std::ranges::none_of(doc_.classes, [&](const ClassDecl& c) { return c.name.text == word.text; })) {
    std::vector<std::string_view> names;
    for (const ClassRow& row : out_.classes) names.push_back(row.name.str());
    undeclared(word, "class", names);
  }
  return index;
}

void Resolver::churn() {
  if (!doc_.churn) return;
  Churn& churn = out_.limits.churn;
  const ChurnUse& use = *doc_.churn;
  if (use.per_snapshot) churn.per_snapshot = share(*use.per_snapshot, 0.001, 2, "the churn");
  if (!use.in_window) return;
  churn.in_window = share(*use.in_window, 0.001, 1000, "the churn");
  if (const auto window = value(*use.window, Dimension::time, 1, 3600, "the time"))
    churn.window = from_seconds(*window);
}

void Resolver::reserves() {
  constexpr std::array<std::string_view, 4> levels{"rack", "cluster", "region", "zone"};
  for (const ReserveUse& use : doc_.reserves) {
    const auto index = declared_class(use.service_class);
    const auto factor = value(use.factor, Dimension::factor, 0.1, 100, "the factor");
    if (!index || !factor) continue;
    Reserve out{*index, {}, {}, *factor, use.service_class.span.line};
    if (out_.at(*index).demand_high_tokens_per_s == std::numeric_limits<double>::infinity()) {
      error(use.service_class.span, fmt::format("class {} declares no demand", use.service_class.text),
            "write in the class: demand 0..1200 tok/s");
      continue;
    }
    if (use.level) {
      out.level = value_of<DomainLevel>(use.level->text);
      if (!out.level) {
        not_one_of(*use.level, "a failure domain", levels);
        continue;
      }
      out.place = name<DomainName>(*use.place);
    }
    out_.limits.reserves.push_back(std::move(out));
  }
}

void Resolver::spreads() {
  Seen seen;
  for (const SpreadUse& use : doc_.spreads) {
    const auto index = declared_class(use.service_class);
    if (!index || !first_use(seen, use.service_class, "spread of")) continue;
    ClassRow& row = out_.classes[index->at()];
    row.spread_line = use.service_class.span.line;
    for (const auto& [quantity, field] :
         {std::pair(&use.engines, &row.spread_engines), std::pair(&use.racks, &row.spread_racks)})
      if (*quantity)
        if (const auto v = value(**quantity, Dimension::count, 1, most_spread, "the number"))
          *field = static_cast<std::uint32_t>(*v);
    // Each rack has an engine.
    row.spread_engines = std::max(row.spread_engines, row.spread_racks);
  }
}

void Resolver::survivals() {
  constexpr std::array<std::string_view, 4> levels{"rack", "cluster", "region", "zone"};
  Seen seen;
  for (const SurviveUse& use : doc_.survivals) {
    const auto level = value_of<DomainLevel>(use.level.text);
    if (!level) {
      not_one_of(use.level, "a failure domain whose loss can be survived", levels);
      continue;
    }
    const auto from = criticality(use.from);
    // Of several at a time nothing is promised: the check would be of every set of them.
    const auto count = value(use.count, Dimension::count, 1, 1e6, "the number of domains lost at a time");
    if (count && *count != 1)
      error(use.count.span, "no plan promises more than the loss of one domain at a time",
            fmt::format("write: survive 1 {}", use.level.text));
    if (!first_use(seen, use.level, "survival of a") || !from || !count) continue;
    out_.limits.survive.push_back({*level, *from, use.level.span.line});
  }
  std::ranges::sort(out_.limits.survive, {}, &Survive::level);
}

void Resolver::caps_nest() {
  struct Level {
    LimitKind kind;
    std::string_view noun;
    std::optional<double> cap;
  };
  const Limits& limits = out_.limits;
  const std::array<Level, 5> levels{{{LimitKind::engine_weight, "engine", limits.engine_weight_cap},
                                     {LimitKind::rack_weight, "rack", limits.rack_weight_cap},
                                     {LimitKind::cluster_weight, "cluster", limits.cluster_weight_cap},
                                     {LimitKind::region_weight, "region", limits.region_weight_cap},
                                     {LimitKind::zone_weight, "zone", limits.zone_weight_cap}}};
  const auto report = [this](const Level& outer, const Level& inner) {
    for (const LimitUse& use : doc_.limits)
      if (use.kind == outer.kind)
        return error(
            use.value.span, fmt::format("a {}'s cap is below that of its {}s", outer.noun, inner.noun),
            fmt::format("a {} holds whole {}s: raise its cap or lower theirs", outer.noun, inner.noun));
  };
  for (std::size_t outer = 1; outer < levels.size(); ++outer)
    for (std::size_t inner = outer; inner-- > 0;)
      if (levels[outer].cap && levels[inner].cap && *levels[outer].cap < *levels[inner].cap) {
        report(levels[outer], levels[inner]);
        break;
      }
}

void Resolver::numbers() {
  for (const KnobUse& use : doc_.knobs)
    if (const auto v = value(use.value, use.knob->dimension, use.knob->low, use.knob->high,
                             fmt::format("'{}'", use.knob->word)))
      use.knob->set(out_, *v);
  ordered("stale", "soft", "hard", false);
  ordered("stale", "warn", "degrade", false);
  ordered("queue", "from", "to", true);
  ordered("timeouts", "connect", "total", false);
  ordered("timeouts", "first_byte", "total", true);
  ordered("timeouts", "gap", "total", true);
}

/// Reports at whichever of the two the file sets.
void Resolver::ordered(std::string_view clause, std::string_view lesser, std::string_view greater,
                       bool may_be_equal) {
  const Knob* low = nullptr;
  const Knob* high = nullptr;
  for (const Knob& knob : knobs())
    if (knob.clause == clause) {
      if (knob.word == lesser) low = &knob;
      if (knob.word == greater) high = &knob;
    }
  const double a = low->get(out_), b = high->get(out_);
  if (a < b || (may_be_equal && a == b)) return;
  for (const KnobUse& use : doc_.knobs)
    if (use.knob == low || use.knob == high)
      return error(
          use.value.span,
          fmt::format("'{}' is {} and '{}' is {}", lesser, write(a, low->dimension), greater,
                      write(b, high->dimension)),
          fmt::format("'{}' must be {} '{}'", lesser, may_be_equal ? "at most" : "less than", greater));
}

void Resolver::retry_lists() {
  Retry& retry = out_.retry;
  if (doc_.retry_on_given) {
    retry.on.fill(false);
    retry.statuses.clear();
    constexpr std::array<std::string_view, 3> kinds{"connect", "reset", "timeout"};
    for (const Word& word : doc_.retry_on) {
      const bool number = word.text[0] >= '0' && word.text[0] <= '9';
      if (!number) {
        if (std::ranges::find(kinds, word.text) == kinds.end())
          not_one_of(word, "a failure that may be retried", kinds);
        else
          retry.on[static_cast<std::size_t>(*value_of<FailureKind>(word.text))] = true;
      } else if (const auto v = value({word.text, "", word.span}, Dimension::count, 100, 599, "the status")) {
        if (*v < 500 && *v != 429)
          error(word.span, fmt::format("{} is the client's or no failure", word.text),
                "retry 429 or 500 to 599");
        retry.statuses.push_back(static_cast<std::uint16_t>(*v));
      }
    }
  }
  if (doc_.retry_not_on) {
    retry.never_statuses.clear();
    for (const Quantity& quantity : *doc_.retry_not_on)
      if (const auto v = value(quantity, Dimension::count, 400, 599, "the status")) {
        if (retry.retries_status(static_cast<int>(*v)))
          error(quantity.span, fmt::format("{} is retried as well", quantity.digits),
                "take it from one of the two lists");
        retry.never_statuses.push_back(static_cast<std::uint16_t>(*v));
      }
  }
  for (auto* list : {&retry.statuses, &retry.never_statuses}) {
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  retry.on[static_cast<std::size_t>(FailureKind::status)] = !retry.statuses.empty();
}

CompiledPolicy resolve(const Document& document, std::vector<Diagnostic>& errors) {
  return Resolver(document, errors).run();
}

}  // namespace signalbox::policy
