// How scenarios speak to this role. The solver is a stand-in that spreads each source by free capacity.
#pragma once

#include "actors/global_optimizer/machine/machine.hpp"
#include "tests/support/scenario.hpp"
#include "tests/support/small_fleet.hpp"

namespace signalbox::global_optimizer::testing {

inline optimizer::Plan spread(const optimizer::Problem& problem) {
  optimizer::Plan plan;
  plan.flow_per_s.resize(problem.pairs.size());
  plan.load.resize(problem.engines.size());
  for (const auto& source : problem.sources) {
    double total = 0;
    for (const auto& pair : problem.pairs_of(source))
      total += problem.engines[pair.engine.at()].curve.ceiling / pair.work_s;
    for (std::size_t i = source.first_pair; i < source.first_pair + source.pair_count; ++i) {
      const auto& pair = problem.pairs[i];
      const double share = problem.engines[pair.engine.at()].curve.ceiling / pair.work_s / total;
      plan.flow_per_s[i] = source.demand_per_s * share;
      plan.load[pair.engine.at()] += plan.flow_per_s[i] * pair.work_s;
    }
    plan.shed_per_s.push_back(source.pair_count ? 0 : source.demand_per_s);
    plan.source_price_s.push_back(0);
  }
  for (std::size_t e = 0; e < problem.engines.size(); ++e)
    plan.price.push_back(problem.engines[e].curve.marginal(plan.load[e]));
  plan.terms = optimizer::objective_terms(problem, plan.flow_per_s, plan.shed_per_s, plan.load);
  for (const double term : plan.terms) plan.certificate.objective += term;
  plan.certificate.lower_bound = plan.certificate.objective / 2;
  plan.certificate.relative_gap = plan.certificate.objective > 0 ? 1 : 0;
  return plan;
}

inline tests::Driver<global_optimizer::Machine> driver(std::string kept_term = {}) {
  tests::Driver<global_optimizer::Machine> out;
  out.words = tests::small_words();
  auto last = std::make_shared<Solve>();
  auto refuse = std::make_shared<bool>(false);
  out.make = [kept_term, refuse] {
    Options o;
    o.id = ProcessName("opt-2");
    o.table = tests::small_table();
    o.kept_term = kept_term;
    o.verify = [refuse](const auto&, const auto&, double) {
      return *refuse ? Status(invalid("the verifier was told to refuse")) : Status{};
    };
    return global_optimizer::Machine(o);
  };
  // tell solved | failed <fault> | verifier refuses|accepts
  out.input = [last, refuse](const std::string& name, tests::Reader& in) -> global_optimizer::Machine::Input {
    if (name == "failed") return SolveFailed{last->number, in.word(), "told to"};
    if (name == "solved") return SolveDone{last->number, spread(last->problem)};
    *refuse = in.word() == "refuses";
    return SolveFailed{0, "nothing", {}};
  };
  out.show_command = [last](const global_optimizer::Machine::Command& command) {
    const auto& solve = std::get<Solve>(command);
    *last = solve;
    std::string text = fmt::format("solve {}:", solve.number);
    for (const auto& s : solve.problem.sources)
      text += fmt::format(" [cluster {} class {} {:.2f}/s {} engines]", s.cluster.value,
                          s.service_class.value, s.demand_per_s, s.pair_count);
    for (const auto& e : solve.problem.engines) text += fmt::format(" ceiling {:.3f}", e.curve.ceiling);
    return text + (solve.warm.price.empty() ? " cold" : " warm");
  };
  out.show_view = [](const global_optimizer::Machine& m) {
    const auto v = m.view();
    return fmt::format("    ready={} leads={} term={}@{} state={}\n", v.standing.ready, v.standing.leads,
                       v.standing.term.counter, v.standing.term.optimizer, v.standing.state);
  };
  return out;
}

}  // namespace signalbox::global_optimizer::testing
