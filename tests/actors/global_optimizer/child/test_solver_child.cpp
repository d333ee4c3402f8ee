#include <signal.h>
#include <time.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "actors/global_optimizer/child/solver_child.hpp"
#include "optimizer/synthetic/synthetic.hpp"

using namespace signalbox;
using namespace signalbox::optimizer;

namespace {

Instant now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return instant_at(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

SolveRequest request() {
  SolveRequest r;
  r.problem = build_problem(synthetic_fleet({5, 50, 3, 0.7, false, 1}))->problem;
  return r;
}

SolverChildOptions options() {
  SolverChildOptions o;
  o.program = SIGNALBOX_SOLVER_PROGRAM;
  o.deadline = 30s;
  return o;
}

/// Submits and waits for the outcome.
SolverOutcome outcome_of(SolverChild& child, SolveRequest r) {
  child.submit(std::move(r), now());
  for (;;) {
    if (auto outcome = child.poll(now())) return std::move(*outcome);
    child.wait(100ms);
  }
}

struct FaultInEnvironment {
  explicit FaultInEnvironment(const char* fault) { ::setenv("SIGNALBOX_SOLVER_FAULT", fault, 1); }
  ~FaultInEnvironment() { ::unsetenv("SIGNALBOX_SOLVER_FAULT"); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(one_child_solves_one_problem_after_another) {
  SolverChild child(options());
  for (int i = 0; i < 3; ++i) {
    const auto outcome = outcome_of(child, request());
    BOOST_REQUIRE_MESSAGE(outcome.has_value(), (outcome ? std::string() : outcome.error().text));
    BOOST_TEST(outcome->certificate.relative_gap < 1e-3);
  }
  BOOST_TEST(child.starts() == 1u);
}

BOOST_AUTO_TEST_CASE(each_fault_is_named_and_the_next_solve_works) {
  struct Row {
    const char* fault;
    SolverFault want;
  };
  for (const Row& row : {Row{"crash", SolverFault::crashed}, Row{"hang", SolverFault::timed_out},
                         Row{"nan", SolverFault::bad_reply}}) {
    auto o = options();
    if (row.want == SolverFault::timed_out) o.deadline = 200ms;
    SolverChild child(o);
    {
      const FaultInEnvironment fault(row.fault);
      const auto outcome = outcome_of(child, request());
      BOOST_REQUIRE_MESSAGE(!outcome.has_value(), row.fault);
      BOOST_TEST(to_string(outcome.error().fault) == to_string(row.want));
      BOOST_TEST(!outcome.error().text.empty());
      BOOST_TEST(child.pid() == -1);
    }
    if (row.want != SolverFault::timed_out) BOOST_TEST(outcome_of(child, request()).has_value(), row.fault);
  }
}

BOOST_AUTO_TEST_CASE(a_child_that_is_killed_while_idle_is_replaced) {
  SolverChild child(options());
  BOOST_REQUIRE(outcome_of(child, request()).has_value());
  ::kill(child.pid(), SIGKILL);
  const auto lost = outcome_of(child, request());
  if (!lost) BOOST_TEST(to_string(lost.error().fault) == "crashed");
  BOOST_TEST(outcome_of(child, request()).has_value());
  BOOST_TEST(child.starts() == 2u);
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_there_and_a_problem_that_is_malformed_are_told_apart) {
  auto o = options();
  o.program = "/nonexistent/solver";
  SolverChild missing(o);
  BOOST_TEST(to_string(outcome_of(missing, request()).error().fault) == "not_started");
  SolverChild child(options());
  SolveRequest bad = request();
  bad.problem.sources[0].shed_cost_s = -1.0;
  BOOST_TEST(to_string(outcome_of(child, bad).error().fault) == "refused");
}

BOOST_AUTO_TEST_CASE(too_little_memory_is_a_crash_of_the_child_only,
                     *boost::unit_test::enable_if<limits_memory>()) {
  auto o = options();
  o.memory_bytes = 4u << 20;  // less than the program itself: it gets nothing for a problem
  SolverChild child(o);
  const auto outcome = outcome_of(child, request());
  BOOST_REQUIRE(!outcome.has_value());
  BOOST_TEST(to_string(outcome.error().fault) == "crashed");
}

BOOST_AUTO_TEST_CASE(a_new_problem_replaces_the_one_in_flight) {
  SolverChild child(options());
  child.submit(request(), now());
  const auto outcome = outcome_of(child, request());
  BOOST_TEST(outcome.has_value());
  BOOST_TEST(child.starts() == 2u);
}
