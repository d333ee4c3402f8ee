// Tends one solver child on a thread of its own: the newest request wins, every outcome is told once.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "actors/global_optimizer/child/solver_child.hpp"
#include "actors/global_optimizer/machine/machine.hpp"

namespace signalbox::global_optimizer {

class SolverThread {
 public:
  /// Called on the solver's thread.
  using Tell = std::function<void(Machine::Input answer)>;

  SolverThread(optimizer::SolverChildOptions child, optimizer::SolveOptions solve);

  /// Thread-safe; never waits. A solve that is under way is abandoned without an answer.
  void submit(const Solve& solve, Tell tell);

 private:
  struct Job {
    Solve solve;
    Tell tell;
  };
  void run(std::stop_token stop);
  std::optional<Job> next(std::stop_token stop);
  bool is_superseded();
  void work(Job job, optimizer::SolverChild& child, std::stop_token stop);

  optimizer::SolverChildOptions child_options_;
  optimizer::SolveOptions solve_options_;
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::optional<Job> waiting_;
  std::jthread thread_;  ///< last: it ends before what it uses
};

}  // namespace signalbox::global_optimizer
